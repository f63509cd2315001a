import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express'
import { AppError, invalidRequest, notFound as noSuch, toAppError, toErrorBody } from '../../shared/kernel/errors.ts'
import type { Log } from '../../shared/kernel/log.ts'

/** Answers requests that no route matched with 404. `hintFor` names paths that exist. */
export function notFound(hintFor: (path: string) => string): RequestHandler {
  return (req) => {
    const path = decodeURIComponent(req.path) // Throws a URIError for a malformed path, which `recover` answers with 400.
    throw noSuch(`no such path; ${hintFor(path)}`)
  }
}

/**
 * Answers with the JSON error envelope (api.md "Errors"). An unexpected error becomes a 500 whose message reveals nothing, and
 * is logged.
 */
export function recover(log: Log): ErrorRequestHandler {
  return (cause: unknown, req, res, _next) => {
    const error = frameworkRefusal(cause) ?? toAppError(cause)
    if (error.kind === 'internal') {
      log.error('request failed', { request_id: res.getHeader('X-Request-ID'), cause: error.cause ?? error })
    }
    res.locals['refusal'] = error.code ?? error.kind
    if (res.headersSent || res.closed) res.destroy()
    else sendError(req, res, error)
  }
}

/** Maps the errors that Express itself throws: a malformed path, a range or a precondition that a file cannot satisfy. */
function frameworkRefusal(cause: unknown): AppError | undefined {
  if (cause instanceof URIError) return invalidRequest('the path is not valid percent-encoding')
  if (cause instanceof AppError || !(cause instanceof Error) || !('status' in cause)) return undefined
  const status = Number(cause.status)
  if (!(status >= 400 && status < 500)) return undefined
  return invalidRequest('the Range or If-* headers cannot be met; send the request without them', { status })
}

/** Answers errors of this request as plain text, which a page shows unchanged. */
export function refuseInWords(res: Response): void {
  res.locals['refusesInWords'] = true
}

function sendError(req: Request, res: Response, error: AppError): void {
  const isText = res.locals['refusesInWords'] === true
  const envelope = toErrorBody(error)
  const body = Buffer.from(isText ? envelope.error.message : JSON.stringify(envelope))
  res.status(error.status)
  res.setHeader('Content-Type', isText ? 'text/plain; charset=utf-8' : 'application/json; charset=utf-8')
  res.setHeader('Content-Length', body.length)
  if (error.kind === 'authentication' && !res.hasHeader('WWW-Authenticate')) {
    res.setHeader('WWW-Authenticate', challengeOf(error))
  }
  if (error.traceId !== undefined) res.setHeader('X-Trace-ID', error.traceId)
  const retryAfterSecs = error.retryAfterSecs ?? (error.kind === 'rate_limit' ? 1 : undefined)
  if (retryAfterSecs !== undefined) res.setHeader('Retry-After', Math.max(1, Math.ceil(retryAfterSecs)))
  if (res.shouldKeepAlive || req.complete) res.end(body)
  else endAfterBody(req, res, body)
}

/** The code is set when a token was sent and refused, and absent when none was sent (RFC 6750, section 3). */
const challengeOf = ({ code }: AppError): string => (code === undefined ? 'Bearer' : `Bearer error="${code}"`)

/** How long the rest of a refused body is read: it must arrive in each window, and the whole within `totalMs`. */
const REST = { windowMs: 2_000, totalMs: 30_000 }

/**
 * Answers a request whose body has not arrived completely, on a connection that closes afterwards. Closing a socket with unread
 * bytes resets the connection, and the client would lose the answer. So the answer is written first, then the rest of the body is
 * read and discarded.
 */
function endAfterBody(req: Request, res: Response, body: Buffer): void {
  const { socket } = req
  let bytesBefore = socket.bytesRead
  // When the process was blocked, arrived bytes are read after the timers and before `setImmediate`.
  const look = () => {
    if (socket.bytesRead === bytesBefore) req.destroy()
    bytesBefore = socket.bytesRead
  }
  res.write(body)
  const window = setInterval(() => setImmediate(look), REST.windowMs).unref()
  const total = setTimeout(() => req.destroy(), REST.totalMs).unref()
  req.once('end', () => res.end())
  req.once('close', () => {
    clearInterval(window)
    clearTimeout(total)
  })
  req.resume()
}
