import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express'
import { AppError, invalidRequest, notFound as noSuch, toAppError, toErrorBody } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'

/** What no route has answered. */
export function notFound(basePath: string): RequestHandler {
  return (req) => {
    decodeURIComponent(req.path) // Throws what `recover` answers with 400.
    throw noSuch(`no such path; the paths of this API begin with ${basePath}`)
  }
}

/** Turns whatever was thrown into the JSON envelope (api.md "Errors"); a bug becomes a 500 that says nothing about itself. */
export function recover(log: Log): ErrorRequestHandler {
  return (cause: unknown, req, res, _next) => {
    const error = refusalOfFramework(cause) ?? toAppError(cause)
    if (error.kind === 'internal') {
      log.error('request failed', { request_id: res.getHeader('X-Request-ID'), cause: error.cause ?? error })
    }
    if (res.headersSent || res.closed) res.destroy()
    else sendError(req, res, error)
  }
}

/** What Express and its parts refuse by themselves: a path that cannot be decoded, a range or a condition that does not fit a file. */
function refusalOfFramework(cause: unknown): AppError | undefined {
  if (cause instanceof URIError) return invalidRequest('the path is not valid percent-encoding')
  if (cause instanceof AppError || !(cause instanceof Error) || !('status' in cause)) return undefined
  const status = Number(cause.status)
  return status >= 400 && status < 500 ? invalidRequest('the request headers cannot be met', { status }) : undefined
}

function sendError(req: Request, res: Response, error: AppError): void {
  const body = Buffer.from(JSON.stringify(toErrorBody(error)))
  res.status(error.status)
  res.setHeader('Content-Type', 'application/json; charset=utf-8')
  res.setHeader('Content-Length', body.length)
  if (error.kind === 'authentication') res.setHeader('WWW-Authenticate', challengeOf(error))
  const retryAfterSecs = error.retryAfterSecs ?? (error.kind === 'rate_limit' ? 1 : undefined)
  if (retryAfterSecs !== undefined) res.setHeader('Retry-After', Math.max(1, Math.ceil(retryAfterSecs)))
  if (res.shouldKeepAlive || req.complete) res.end(body)
  else endAfterBody(req, res, body)
}

/** RFC 6750, 3: a code where a token was sent and does not hold, none where there was no token. */
const challengeOf = ({ code }: AppError): string => (code === undefined ? 'Bearer' : `Bearer error="${code}"`)

/** How long a client may go on sending after it has been refused. */
const LINGER_MS = 2_000

/**
 * Answers a request whose body is still on its way, on a connection that will be closed. Closing with unread bytes makes the
 * kernel reset the connection, and the client loses the answer: so the answer goes out, then the rest is read and thrown away.
 */
function endAfterBody(req: Request, res: Response, body: Buffer): void {
  res.write(body)
  const cut = setTimeout(() => req.destroy(), LINGER_MS).unref()
  req.once('end', () => res.end())
  req.once('close', () => clearTimeout(cut))
  req.resume()
}
