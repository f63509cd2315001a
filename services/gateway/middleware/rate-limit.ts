import type { RequestHandler } from 'express'
import type { RateLimiter } from '../../../shared/tenancy/rate/port.ts'
import { tenantOf } from './auth.ts'
import { addressOf, clientKey } from './client-key.ts'
import { type Bucket, count } from './counted.ts'

/** Counts the request for its client and refuses it above the limit (api.md "Limits", D2.9). Without a limiter it does nothing. */
export function limitRate(limiter: RateLimiter | undefined, basePath: string): RequestHandler {
  if (!limiter) return (_req, _res, next) => next()
  return async (req, res, next) => {
    const client = clientKey(addressOf(req.ip, req.socket.remoteAddress))
    const take = (bucket: Bucket) => limiter.take(bucket === 'all' ? client : `${bucket} ${client}`)
    await count(req, res, { basePath, take, whose: '' })
    next()
  }
}

/** Counts an authenticated request again for its tenant, which may have many clients. Requests without a token are not counted. */
export function limitTenantRate(limiter: RateLimiter | undefined, basePath: string): RequestHandler {
  if (!limiter) return (_req, _res, next) => next()
  return async (req, res, next) => {
    if (req.headers.authorization === undefined) return next()
    const tenant = tenantOf(res)
    const take = (bucket: Bucket) => limiter.take(bucket === 'all' ? `tenant ${tenant}` : `tenant ${bucket} ${tenant}`)
    await count(req, res, { basePath, take, whose: '' })
    next()
  }
}
