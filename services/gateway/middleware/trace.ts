import type { RequestHandler } from 'express'
import { linked, startSpan, traceFields, withinSpan } from '../../../shared/kernel/trace.ts'

/** The first status of a failure that is the server's. */
const SERVER_ERROR = 500

/**
 * Runs the request with its id, and in a span that continues the client's `traceparent`. Calls to other processes and jobs take both
 * along.
 */
export function traceRequests(): RequestHandler {
  return (req, res, next) => {
    const { method, headers } = req
    const request_id = String(res.getHeader('X-Request-ID'))
    const { traceparent } = headers
    linked({ request_id, ...(typeof traceparent === 'string' && { traceparent }) }, () => {
      const span = startSpan(method, { kind: 'server', attributes: { 'http.request.method': method } })
      if (!span) return next()
      res.once('close', () => {
        const route = res.locals['route'] as string | undefined
        if (route !== undefined) span.rename(`${method} ${route}`)
        span.set({ 'http.route': route, 'http.response.status_code': res.statusCode })
        span.end(res.statusCode >= SERVER_ERROR ? String(res.statusCode) : undefined)
      })
      withinSpan(span, () => {
        res.locals['trace'] = traceFields()
        next()
      })
    })
  }
}
