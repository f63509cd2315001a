import type { RequestHandler, Response } from 'express'
import { tooMany } from '../../../shared/kernel/errors.ts'
import type { RateLimiter, Taken } from '../../../shared/tenancy/rate/port.ts'
import { tenantOf } from './auth.ts'
import { addressOf, clientKey } from './client-key.ts'
import { isControl } from './control.ts'

/** Counts the request for its client and refuses it above the limit (api.md "Limits", D2.9). Without a limiter it does nothing. */
export function limitRate(limiter: RateLimiter | undefined, basePath: string): RequestHandler {
  if (!limiter) return (_req, _res, next) => next()
  return async (req, res, next) => {
    const client = clientKey(addressOf(req.ip, req.socket.remoteAddress))
    admit(res, await limiter.take(isControl(req, basePath) ? `control ${client}` : client))
    next()
  }
}

/** Counts an authenticated request again for its tenant, which may have many clients. Requests without a token are not counted. */
export function limitTenantRate(limiter: RateLimiter | undefined, basePath: string): RequestHandler {
  if (!limiter) return (_req, _res, next) => next()
  return async (req, res, next) => {
    const bucket = isControl(req, basePath) ? 'tenant control' : 'tenant'
    if (req.headers.authorization !== undefined) admit(res, await limiter.take(`${bucket} ${tenantOf(res)}`))
    next()
  }
}

function admit(res: Response, taken: Taken): void {
  const { isAllowed, limit, resetSecs } = taken
  showLimit(res, taken)
  if (!isAllowed) throw tooMany(`more than ${limit} requests a minute; try again in ${resetSecs} s`, resetSecs)
}

/** Sets the headers of D2.9: where a request counts against several limits, those of the one that refuses it or is nearest. */
export function showLimit(res: Response, { isAllowed, limit, remaining, resetSecs }: Taken): void {
  const known = res.getHeader('RateLimit-Remaining')
  if (isAllowed && known !== undefined && remaining >= Number(known)) return
  res.setHeader('RateLimit-Limit', limit)
  res.setHeader('RateLimit-Remaining', remaining)
  res.setHeader('RateLimit-Reset', resetSecs)
}
