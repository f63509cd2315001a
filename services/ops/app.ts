import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express'
import { AppError, notFound, toAppError, toErrorBody } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import type { Exposition } from './exposition.ts'
import type { Readiness } from './readiness.ts'
import { wantToken } from './token.ts'

export type OpsDeps = {
  /** What the public listener has as well: request ids, and which `Host` is answered. */
  guards: readonly RequestHandler[]
  readiness: Pick<Readiness, 'failing'>
  exposition: Exposition
  /** OPS_TOKEN. */
  token: string | undefined
  log: Log
}

/** The operator's face of a process (D1.3), on a port of its own: probes for all, the rest for who has the token. */
export function createOpsApp({ guards, readiness, exposition, token, log }: OpsDeps): Express {
  const app = express()
  app.disable('x-powered-by').disable('etag').enable('case sensitive routing')
  app.use(...guards, constantHeaders)

  app.route('/livez').get(live).all(refuseMethod)
  app.route('/readyz').get(ready(readiness)).all(refuseMethod)

  app.use(wantToken(token)) // Above what may not exist: without the token nobody learns what does.
  app.route('/metrics').get(metrics(exposition)).all(refuseMethod)

  app.use(() => {
    throw notFound('no such path; there are /livez, /readyz and /metrics')
  })
  app.use(recover(log))
  return app
}

const constantHeaders: RequestHandler = (_req, res, next) => {
  res.setHeader('Cache-Control', 'no-store')
  res.setHeader('X-Content-Type-Options', 'nosniff')
  next()
}

/** That the event loop turns is all it says: a process that is not ready must not be restarted for it. */
const live: RequestHandler = (_req, res) => {
  res.json({ status: 'ok' })
}

function ready({ failing }: OpsDeps['readiness']): RequestHandler {
  return (_req, res) => {
    const failed = failing()
    if (failed.length === 0) res.json({ status: 'ok' })
    else res.status(503).json({ status: 'unavailable', failing: failed })
  }
}

function metrics(exposition: Exposition): RequestHandler {
  return async (_req, res) => {
    const { contentType, text } = await exposition()
    res.setHeader('Content-Type', contentType)
    res.end(text)
  }
}

const ALLOW = 'GET, HEAD'

const refuseMethod: RequestHandler = (_req, res) => {
  res.setHeader('Allow', ALLOW)
  throw new AppError('invalid_request', `this path takes ${ALLOW} only`, { status: 405 })
}

function recover(log: Log): ErrorRequestHandler {
  return (cause: unknown, _req, res, _next) => {
    const error = toAppError(cause)
    if (error.kind === 'internal') log.error('ops request failed', { cause })
    if (res.headersSent) res.destroy()
    else res.status(error.status).json(toErrorBody(error))
  }
}
