import type { RequestHandler } from 'express'
import type { CorsRules } from './cors.ts'

/**
 * Sets the headers that are equal on every response: the constant ones of api.md "CORS headers set", and security headers for
 * browsers.
 */
export function constantHeaders({ allowMethods = [], allowHeaders, exposeHeaders }: CorsRules): RequestHandler {
  const headers = Object.entries({
    'Access-Control-Allow-Methods': ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', ...allowMethods].join(', '),
    'Access-Control-Allow-Headers': ['Content-Type', 'Authorization', ...allowHeaders].join(', '),
    'Access-Control-Expose-Headers': ['X-Request-ID', ...exposeHeaders].join(', '),
    'Access-Control-Max-Age': '3600',
    'Cache-Control': 'no-store',
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
    'X-Content-Type-Options': 'nosniff',
  })
  return (_req, res, next) => {
    for (const [name, value] of headers) res.setHeader(name, value)
    next()
  }
}
