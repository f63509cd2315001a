import type { RequestHandler, Response } from 'express'
import { hasKind, tooMany } from '../../../shared/kernel/errors.ts'
import type { TenantRequests } from '../../../shared/tenancy/limits/tenant-requests.ts'
import type { Taken } from '../../../shared/tenancy/rate/port.ts'
import { tenantOf } from './auth.ts'
import { isControl } from './control.ts'
import { showLimit } from './rate-limit.ts'

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
    const taken = await take(res, requests, { method: req.method, isControl: isControl(req, basePath) })
    if (!taken) return next()
    showLimit(res, taken)
    const { isAllowed, limit, resetSecs } = taken
    if (isAllowed) return next()
    throw tooMany(`more than ${limit} requests a minute of this tenant; try again in ${resetSecs} s`, resetSecs)
  }
}

async function take(
  res: Response,
  requests: Requests,
  { method, isControl: isControlCall }: { method: string; isControl: boolean },
): Promise<Taken | undefined> {
  try {
    return await requests.take(tenantOf(res), isControlCall ? 'control' : 'all')
  } catch (cause) {
    const isUnknown = hasKind(cause, 'unavailable')
    if (isUnknown && FOLLOWING.includes(method)) return undefined
    throw cause
  }
}
