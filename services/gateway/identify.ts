import { AppError } from '../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import type { Identify, Identity } from '../../shared/tenancy/auth/port.ts'
import { bearerOf, createTokenCheck } from '../http/token.ts'

const ANONYMOUS: Identity = { tenant: DEFAULT_TENANT, subject: 'anonymous' }

/** Accepts every request as the default tenant: development mode (api.md "Authentication" 5). */
export function createOpenIdentify(): Identify {
  return async () => ANONYMOUS
}

/** Requires the one token of the standalone form (api.md "Authentication" 7). No token is 401, another token is 403. */
export function createTokenIdentify(token: string): Identify {
  const isToken = createTokenCheck(token)
  return async (authorization) => {
    if (!authorization) throw new AppError('authentication', 'send a token: Authorization: Bearer <ACCESS_TOKEN>')
    if (isToken(bearerOf(authorization))) return ANONYMOUS
    throw new AppError('permission', 'this is not the API_TOKEN that the server was started with; send that one')
  }
}
