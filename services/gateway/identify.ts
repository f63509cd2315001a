import { createHash, timingSafeEqual } from 'node:crypto'
import type { Identify, Identity } from '../../shared/auth/port.ts'
import { AppError } from '../../shared/errors.ts'
import { DEFAULT_TENANT } from '../../shared/tenant.ts'

const ANONYMOUS: Identity = { tenant: DEFAULT_TENANT, subject: 'anonymous' }

/** Development: no token is asked for (api.md "Authentication" 5). */
export function createOpenIdentify(): Identify {
  return async () => ANONYMOUS
}

/** The standalone form's one token (api.md "Authentication" 7): none is 401, another one 403. */
export function createTokenIdentify(token: string): Identify {
  const expected = digest(token)
  return async (authorization) => {
    if (!authorization) throw new AppError('authentication', 'send a token: Authorization: Bearer <ACCESS_TOKEN>')
    const given = /^bearer +(\S+) *$/i.exec(authorization)?.[1]
    if (given !== undefined && timingSafeEqual(digest(given), expected)) return ANONYMOUS
    throw new AppError('permission', 'this token is not the one that this server was started with')
  }
}

/** Equal lengths, whatever was sent, so that the comparison takes the same time. */
const digest = (token: string): Buffer => createHash('sha256').update(token).digest()
