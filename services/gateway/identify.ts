import { createHash, timingSafeEqual } from 'node:crypto'
import type { Identify, Identity } from '../../shared/auth/port.ts'
import { AppError } from '../../shared/errors.ts'
import { DEFAULT_TENANT } from '../../shared/tenant.ts'

const ANONYMOUS: Identity = { tenant: DEFAULT_TENANT, subject: 'anonymous' }

/** Accepts every request as the default tenant: development mode (api.md "Authentication" 5). */
export function createOpenIdentify(): Identify {
  return async () => ANONYMOUS
}

/** Requires the one token of the standalone form (api.md "Authentication" 7). No token is 401, another token is 403. */
export function createTokenIdentify(token: string): Identify {
  const expected = digest(token)
  return async (authorization) => {
    if (!authorization) throw new AppError('authentication', 'send a token: Authorization: Bearer <ACCESS_TOKEN>')
    const given = /^bearer +(\S+) *$/i.exec(authorization)?.[1]
    if (given !== undefined && timingSafeEqual(digest(given), expected)) return ANONYMOUS
    throw new AppError('permission', 'this is not the API_TOKEN that the server was started with; send that one')
  }
}

/** A fixed-length digest, so that the comparison takes the same time for every input. */
const digest = (token: string): Buffer => createHash('sha256').update(token).digest()
