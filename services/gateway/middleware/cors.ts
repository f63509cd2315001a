import type { RequestHandler } from 'express'

export type CorsRules = {
  /** CORS_ORIGINS: origins, or `*` for any. */
  origins: readonly string[]
  /** Additions to the methods of api.md "CORS headers set". */
  allowMethods?: readonly string[]
  /** CORS_ALLOW_HEADERS and CORS_EXPOSE_HEADERS: additions to the lists of api.md "CORS headers set". */
  allowHeaders: readonly string[]
  exposeHeaders: readonly string[]
}

/** Sets `Access-Control-Allow-Origin` for allowed origins and answers every preflight (api.md "CORS headers set"). */
export function cors({ origins }: CorsRules): RequestHandler {
  const allowed = new Set(origins)
  const isOpen = allowed.has('*')
  return (req, res, next) => {
    const { origin } = req.headers
    if (isOpen) res.setHeader('Access-Control-Allow-Origin', '*')
    else if (allowed.size > 0) res.setHeader('Vary', 'Origin')
    if (!isOpen && origin !== undefined && allowed.has(origin)) res.setHeader('Access-Control-Allow-Origin', origin)
    if (req.method !== 'OPTIONS') return next()
    res.status(204).end()
  }
}

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
