import type { RequestHandler, Response } from 'express'
import { AppError } from '../../../shared/kernel/errors.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { forSubject } from '../../../shared/kernel/trace.ts'
import { type Identify, type Identity, SCOPES, type Scope } from '../../../shared/tenancy/auth/port.ts'

/** Identifies the caller, for whom everything behind it works, and stores the identity in `res.locals`, or refuses the request (api.md "Authentication"). */
export function authenticate(identify: Identify): RequestHandler {
  return async (req, res, next) => {
    const identity = await identify(req.headers.authorization)
    res.locals['identity'] = identity
    forSubject(identity.subject, next)
  }
}

/** The tenant of the caller. Throws in a route that is mounted before `authenticate`. */
export const tenantOf = (res: Response): TenantId => identityOf(res).tenant

/** The caller within the tenant: the `sub` of the token, or `anonymous` (D3.5). */
export const subjectOf = (res: Response): string => identityOf(res).subject

const ALL: ReadonlySet<Scope> = new Set(SCOPES)

/** The scopes of the caller's token. */
export const scopesOf = (res: Response): ReadonlySet<Scope> => identityOf(res).scopes ?? ALL

/** Throws `permission` when the caller's token does not hold the scope of ADMIN_SCOPE. Without that setting every caller passes. */
export function assertAdmin(res: Response, adminScope: string | undefined, act: string): void {
  if (adminScope === undefined || identityOf(res).isAdmin) return
  throw new AppError('permission', `${act} needs a token with the scope ${adminScope}: ask for one at the issuer`)
}

function identityOf(res: Response): Identity {
  const identity = res.locals['identity'] as Identity | undefined
  if (!identity) throw new Error('this route is mounted before authentication')
  return identity
}
