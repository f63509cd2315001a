import express, { type Express, type RequestHandler } from 'express'
import { once } from '../../shared/kernel/async/once.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import type { Log } from '../../shared/kernel/log.ts'
import { readConsole } from '../http/console-files.ts'
import { sendAsset, sendPage, withConsole } from '../http/console-pages.ts'
import { notFound, recover } from '../http/errors.ts'
import { createRoutes, type RouteTable } from '../http/routes.ts'
import { bearerOf, createTokenCheck } from '../http/token.ts'
import type { Exposition } from './exposition.ts'
import type { Overview } from './overview.ts'
import type { Readiness } from './readiness.ts'

export type OpsDeps = {
  /** Logs each request; runs first, as on the public listener. */
  requestLog: RequestHandler
  /** Refuses foreign host names; the probes are mounted before it. */
  hostCheck: RequestHandler
  readiness: Pick<Readiness, 'failing'>
  exposition: Exposition
  /** Answers all requests below `/queues`. */
  queues: RequestHandler
  /** Reads what `/` shows. */
  overview(): Promise<Overview>
  /** Answers `/members`. */
  members: RequestHandler
  /** Answers `/tenants`. */
  tenants: RequestHandler
  /** OPS_TOKEN. */
  token: string | undefined
  log: Log
}

/**
 * The HTTP app of the ops listener (D1.3 OPS_PORT). The probes answer everyone under any Host or none, because a kubelet asks by the pod's address
 * and HAProxy without a Host; they reveal nothing that a DNS rebinding attack could use. Everything else requires an allowed Host and the token.
 */
export function createOpsApp(deps: OpsDeps): Express {
  const { requestLog, hostCheck, readiness, exposition, queues, overview, members, tenants, token, log } = deps
  const app = express()
  app.disable('x-powered-by').disable('etag').enable('case sensitive routing')
  app.use(requestLog, constantHeaders)

  app.use(createRoutes({ '/livez': { get: live }, '/readyz': { get: ready(readiness) } }))

  app.use(hostCheck)
  app.use(requireToken(token)) // Also before the 404 handler, so that nobody learns without the token which paths exist.
  const pages = { '/members': { get: members }, '/tenants': { get: tenants } }
  app.use(createRoutes({ ...clusterRoutes(overview), '/metrics': { get: metrics(exposition) }, ...pages }))
  app.use('/queues', queues)

  app.use(notFound(() => 'the paths of this listener are /, /livez, /readyz, /metrics, /queues, /members and /tenants'))
  app.use(recover(log))
  return app
}

const constantHeaders: RequestHandler = (_req, res, next) => {
  res.setHeader('Cache-Control', 'no-store')
  res.setHeader('X-Content-Type-Options', 'nosniff')
  res.setHeader('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'") // Pages replace it with their own policy.
  next()
}

/** Answers as long as the event loop runs. It does not depend on readiness: a restart would not make a process ready sooner. */
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

/** `/`: the state of the deployment as JSON. A browser gets the page that shows it, if the console is built; the page reads the same JSON. */
export function clusterRoutes(read: () => Promise<Overview>, readFiles = readConsole): RouteTable {
  const files = once(readFiles)
  const json: RequestHandler = async (_req, res) => {
    res.json(await read())
  }
  const page = withConsole(files, ({ cluster }) => sendPage(cluster), json)
  return {
    '/': {
      async get(req, res, next) {
        res.vary('Accept')
        await (req.accepts(['json', 'html']) === 'html' ? page : json)(req, res, next)
      },
    },
    '/console/assets/:file': { get: withConsole(files, sendAsset) },
  }
}

/**
 * Requires OPS_TOKEN as a bearer token or as the password of any basic-auth user (D1.3). Requires nothing when no token is
 * configured.
 */
function requireToken(token: string | undefined): RequestHandler {
  if (token === undefined) return (_req, _res, next) => next()
  const isToken = createTokenCheck(token)
  return (req, res, next) => {
    if (isToken(tokenOf(req.headers.authorization))) return next()
    res.setHeader('WWW-Authenticate', ['Bearer realm="ops"', 'Basic realm="ops", charset="UTF-8"'])
    throw new AppError('authentication', 'send OPS_TOKEN as a bearer token, or as the password of basic auth')
  }
}

function tokenOf(authorization = ''): string | undefined {
  const bearer = bearerOf(authorization)
  if (bearer !== undefined) return bearer
  const basic = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(authorization)?.[1]
  if (basic === undefined) return undefined
  const credentials = Buffer.from(basic, 'base64').toString()
  const colon = credentials.indexOf(':')
  return colon < 0 ? undefined : credentials.slice(colon + 1)
}
