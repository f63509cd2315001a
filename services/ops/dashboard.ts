import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { ExpressAdapter } from '@bull-board/express'
import { type RequestHandler, Router } from 'express'
import { AppError } from '../../shared/kernel/errors.ts'

type BoardQueue = ConstructorParameters<typeof BullMQAdapter>[0]
type ServerAdapter = Parameters<typeof createBullBoard>[0]['serverAdapter']

export type DashboardDeps = {
  queues: readonly BoardQueue[]
  /** Called when the board could not answer. */
  onProblem(cause: unknown): void
}

/** Everything that the page needs comes from this server. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The dashboard of the queues for the path `basePath`. It changes nothing: only GET and HEAD are accepted. */
export function createDashboard(basePath: string, { queues, onProblem }: DashboardDeps): RequestHandler {
  const adapter = new ExpressAdapter()
  adapter.setBasePath(basePath)
  createBullBoard({
    queues: queues.map((queue) => new BullMQAdapter(queue, { readOnlyMode: true, allowRetries: false })),
    serverAdapter: adapter as unknown as ServerAdapter, // Its types come from another copy of the same package.
    options: { uiConfig: { boardTitle: 'agent-engine', hideRedisDetails: true } },
  })
  // The board's default handler would answer with the text of the error.
  adapter.setErrorHandler((cause) => {
    onProblem(cause)
    return { status: 500, body: { error: 'the queue cannot be read at the moment' } }
  })
  return Router().use(readOnly, secure, adapter.getRouter() as RequestHandler)
}

const readOnly: RequestHandler = ({ method }, res, next) => {
  if (method === 'GET' || method === 'HEAD') return next()
  res.setHeader('Allow', 'GET, HEAD')
  throw new AppError('invalid_request', 'the dashboard accepts only GET, HEAD', { status: 405 })
}

const secure: RequestHandler = (_req, res, next) => {
  res.setHeader('Content-Security-Policy', POLICY)
  res.setHeader('Referrer-Policy', 'no-referrer')
  const render = res.render.bind(res)
  res.render = (view: string, params?: object) =>
    render(view, params, (cause: unknown, html: string) => (cause ? next(cause) : res.send(withoutOutsideLinks(html))))
  next()
}

/** The page loads a font from Google, which an operator's network may not reach. */
const withoutOutsideLinks = (html: string): string => html.replaceAll(/<link\b[^>]*\bhref="(?:https?:)?\/\/[^>]*>/g, '')
