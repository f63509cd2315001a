import type { RequestHandler, Response } from 'express'
import type { Identify, Identity } from '../../../shared/auth/port.ts'
import type { TenantId } from '../../../shared/tenant.ts'
import { forSubject } from '../../../shared/trace.ts'

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

function identityOf(res: Response): Identity {
  const identity = res.locals['identity'] as Identity | undefined
  if (!identity) throw new Error('this route is mounted before authentication')
  return identity
}
