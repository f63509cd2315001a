import type { RequestHandler, Response } from 'express'
import type { Identify, Identity } from '../../../shared/auth/port.ts'
import type { TenantId } from '../../../shared/tenant.ts'

/** Finds out who asks, or refuses (api.md "Authentication"). */
export function authenticate(identify: Identify): RequestHandler {
  return async (req, res, next) => {
    res.locals['identity'] = await identify(req.headers.authorization)
    next()
  }
}

/** The authenticated tenant; only routes below `authenticate` may ask. */
export function tenantOf(res: Response): TenantId {
  const identity = res.locals['identity'] as Identity | undefined
  if (!identity) throw new Error('a route above authentication asked for the tenant')
  return identity.tenant
}
