import type { RequestHandler } from 'express'
import { tooMany } from '../../../shared/errors.ts'
import type { KnownLimits } from '../../../shared/limits/known-limits.ts'
import type { RateLimiter } from '../../../shared/rate/port.ts'
import { tenantOf } from './auth.ts'

export type TenantLimit = { known: Pick<KnownLimits, 'of'>; limiter: RateLimiter }

/**
 * Counts the request for its tenant and refuses it above the tenant's own limit. The path of the limits themselves is exempt, so that
 * a tenant can always raise them.
 */
export function limitTenant(limit: TenantLimit | undefined, limitsPath: string): RequestHandler {
  if (!limit) return (_req, _res, next) => next()
  const { known, limiter } = limit
  return async (req, res, next) => {
    const tenant = tenantOf(res)
    const { requests_per_minute: perMinute } = await known.of(tenant)
    if (perMinute === null || req.path === limitsPath) return next()
    const { isAllowed, remaining, resetSecs } = await limiter.take(`tenant:${tenant}`, perMinute)
    if (isAllowed) return next()
    res.setHeader('RateLimit-Limit', perMinute)
    res.setHeader('RateLimit-Remaining', remaining)
    res.setHeader('RateLimit-Reset', resetSecs)
    throw tooMany(`more than ${perMinute} requests a minute of this tenant; try again in ${resetSecs} s`, resetSecs)
  }
}
