import type { RequestHandler } from 'express'
import { tooMany } from '../../../shared/errors.ts'
import type { KnownLimits } from '../../../shared/limits/known-limits.ts'
import type { RateLimiter } from '../../../shared/rate/port.ts'
import type { TenantId } from '../../../shared/tenant.ts'
import { tenantOf } from './auth.ts'

export type TenantLimit = { known: Pick<KnownLimits, 'of'>; limiter: RateLimiter }

/** Requests that follow or end work, and begin none. */
const FOLLOWING = ['GET', 'HEAD', 'DELETE']

/**
 * Counts the request for its tenant and refuses it above the tenant's own limit. The path of the limits themselves is exempt, so that
 * a tenant can always raise them. While a tenant's limits cannot be read, a request that could begin work is refused with `unavailable`;
 * running work can be followed and ended.
 */
export function limitTenant(limit: TenantLimit | undefined, limitsPath: string): RequestHandler {
  if (!limit) return (_req, _res, next) => next()
  const { known, limiter } = limit
  return async (req, res, next) => {
    if (req.path === limitsPath) return next()
    const tenant = tenantOf(res)
    const perMinute = await requestsOf(tenant, known, req.method)
    if (perMinute === null) return next()
    const { isAllowed, remaining, resetSecs } = await limiter.take(`tenant:${tenant}`, perMinute)
    if (isAllowed) return next()
    res.setHeader('RateLimit-Limit', perMinute)
    res.setHeader('RateLimit-Remaining', remaining)
    res.setHeader('RateLimit-Reset', resetSecs)
    throw tooMany(`more than ${perMinute} requests a minute of this tenant; try again in ${resetSecs} s`, resetSecs)
  }
}

async function requestsOf(tenant: TenantId, known: TenantLimit['known'], method: string): Promise<number | null> {
  try {
    return (await known.of(tenant)).requests_per_minute
  } catch (cause) {
    if (FOLLOWING.includes(method)) return null
    throw cause
  }
}
