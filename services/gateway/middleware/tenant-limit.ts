import type { RequestHandler } from 'express'
import { hasKind } from '../../../shared/kernel/errors.ts'
import type { TenantRequests } from '../../../shared/tenancy/limits/tenant-requests.ts'
import { tenantOf } from './auth.ts'
import { count } from './counted.ts'

type Requests = Pick<TenantRequests, 'take'>

/** Requests that follow or end work, and begin none. */
const FOLLOWING = ['GET', 'HEAD', 'DELETE']

/**
 * Counts the request for its tenant and refuses it above the tenant's own limit. The path of the limits themselves is exempt, so that
 * a tenant can always raise them. While a tenant's limits cannot be read, a request that could begin work is refused with `unavailable`;
 * running work can be followed and ended.
 */
export function limitTenant(requests: Requests | undefined, basePath: string): RequestHandler {
  if (!requests) return (_req, _res, next) => next()
  return async (req, res, next) => {
    if (req.path === `${basePath}/config/limits`) return next()
    await count(req, res, {
      basePath,
      take: (bucket) => requests.take(tenantOf(res), bucket),
      whose: ' of this tenant',
    }).catch((cause: unknown) => {
      if (!hasKind(cause, 'unavailable') || !FOLLOWING.includes(req.method)) throw cause
    })
    next()
  }
}
