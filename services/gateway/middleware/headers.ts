import type { RequestHandler } from 'express'
import type { CorsRules } from './cors.ts'

/** What every response carries: the four headers of api.md's "CORS headers set" that do not depend on the request, and a browser's guards. */
export function constantHeaders({ allowHeaders, exposeHeaders }: CorsRules): RequestHandler {
  const headers = Object.entries({
    'Access-Control-Allow-Methods': 'GET, POST, PUT, DELETE, OPTIONS',
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
