import type { RequestHandler, Response } from 'express'
import { newId } from '../../shared/kernel/ids.ts'
import type { Log } from '../../shared/kernel/log.ts'
import { type Metrics, NO_METRICS } from '../../shared/kernel/metrics.ts'
import { linked, startSpan, traceFields, withinSpan } from '../../shared/kernel/trace.ts'
import type { Identity } from '../../shared/tenancy/auth/port.ts'

/** The form in which a client's own request id is accepted (D2.5). */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/

/** The customary status for a client that left before the answer. Used in the log only. */
const CLIENT_LEFT = 499

const MAX_PATH = 512

/** The first status of a failure that is the server's. */
const SERVER_ERROR = 500

/** Sets `X-Request-ID` (D2.5), and logs one line and counts when the response has ended. */
export function logRequests(log: Log, metrics: Metrics = NO_METRICS): RequestHandler {
  return (req, res, next) => {
    const given = req.headers['x-request-id']
    const requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : newId('req')
    res.setHeader('X-Request-ID', requestId)
    const { method } = req
    const path = pathOf(req.originalUrl) // Read now, so that the listener below does not keep the request of an open stream in memory.
    const start = performance.now()
    res.on('close', () => {
      const status = res.headersSent ? res.statusCode : CLIENT_LEFT
      const refusal = refusalOf(res)
      metrics.countDivided('http_responses', String(status))
      if (refusal !== undefined) metrics.countDivided('refusals', refusal)
      log.info('request', {
        request_id: requestId,
        method,
        path,
        status,
        code: refusal,
        ...callerOf(res),
        ms: Math.round(performance.now() - start),
        run_id: res.getHeader('X-Run-ID'),
        trace_id: res.getHeader('X-Trace-ID'),
        ...(res.locals['trace'] as object | undefined),
        ...(!res.writableFinished && { is_cut: true }),
      })
    })
    next()
  }
}

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

/** The code, or else the type of the error that the request was answered with. */
const refusalOf = (res: Response): string | undefined => res.locals['refusal'] as string | undefined

/** The tenant and the subject, once the request is authenticated. */
export function callerOf(res: Response): { tenant?: string; subject?: string } {
  const { tenant, subject } = (res.locals['identity'] ?? {}) as Partial<Identity>
  return { ...(tenant !== undefined && { tenant }), ...(subject !== undefined && { subject }) }
}

/** The path without the query, which may contain secrets. */
const pathOf = (url: string): string => (url.split('?', 1)[0] ?? '').slice(0, MAX_PATH)
