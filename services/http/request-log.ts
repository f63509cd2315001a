import type { RequestHandler } from 'express'
import { newId } from '../../shared/ids.ts'
import type { Log } from '../../shared/log.ts'

/** A client's own id is kept when it has this form (D2.5). */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/

/** Customary for "the client left before the answer was sent"; it stands in the log only. */
const CLIENT_LEFT = 499

const MAX_PATH = 512

/** Gives the response its `X-Request-ID` (D2.5) and writes one line when it is over. */
export function logRequests(log: Log): RequestHandler {
  return (req, res, next) => {
    const given = req.headers['x-request-id']
    const requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : newId('req')
    res.setHeader('X-Request-ID', requestId)
    const { method } = req
    const path = pathOf(req.originalUrl) // Taken now: an open stream must not hold on to its request.
    const start = performance.now()
    res.once('close', () => {
      log.info('request', {
        request_id: requestId,
        method,
        path,
        status: res.headersSent ? res.statusCode : CLIENT_LEFT,
        ms: Math.round(performance.now() - start),
        run_id: res.getHeader('X-Run-ID'),
        ...(!res.writableFinished && { is_cut: true }),
      })
    })
    next()
  }
}

/** Without the query, which may hold what no log should. */
const pathOf = (url: string): string => (url.split('?', 1)[0] ?? '').slice(0, MAX_PATH)
