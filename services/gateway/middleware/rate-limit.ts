import type { RequestHandler } from 'express'
import { tooMany } from '../../../shared/errors.ts'
import type { RateLimiter } from '../../../shared/rate/port.ts'
import { addressOf, clientKey } from '../client-key.ts'

/** Counts the request for its client and refuses it above the limit (api.md "Limits", D2.9). Without a limiter it does nothing. */
export function limitRate(limiter: RateLimiter | undefined): RequestHandler {
  if (!limiter) return (_req, _res, next) => next()
  return async (req, res, next) => {
    const taken = await limiter.take(clientKey(addressOf(req.ip, req.socket.remoteAddress)))
    const { isAllowed, limit, remaining, resetSecs } = taken
    res.setHeader('RateLimit-Limit', limit)
    res.setHeader('RateLimit-Remaining', remaining)
    res.setHeader('RateLimit-Reset', resetSecs)
    if (!isAllowed) throw tooMany(`more than ${limit} requests a minute; try again in ${resetSecs} s`, resetSecs)
    next()
  }
}
