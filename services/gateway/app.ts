import express, { type Express } from 'express'
import { createBodies } from '../../shared/api/bodies.ts'
import type { Identify } from '../../shared/auth/port.ts'
import type { Broker } from '../../shared/broker/port.ts'
import type { Log } from '../../shared/log.ts'
import { type Metrics, NO_METRICS } from '../../shared/metrics.ts'
import type { ToolDefinition } from '../../shared/providers/port.ts'
import type { RateLimiter } from '../../shared/rate/port.ts'
import type { Ledger } from '../../shared/store/ledger.ts'
import { notFound, recover } from '../http/errors.ts'
import { checkHost } from '../http/host.ts'
import { logRequests } from '../http/request-log.ts'
import { createRoutes, type RouteTable } from '../http/routes.ts'
import { type BodyLimits, createReadBody } from './body.ts'
import { authenticate } from './middleware/auth.ts'
import { type CorsRules, cors } from './middleware/cors.ts'
import { constantHeaders } from './middleware/headers.ts'
import { limitRate } from './middleware/rate-limit.ts'
import { customerLedger } from './routes/customers.ts'
import { explorerRoutes } from './routes/docs.ts'
import { health } from './routes/health.ts'
import { sendMessage } from './routes/messages.ts'
import { permissionRoutes } from './routes/permissions.ts'
import { startRun } from './routes/run.ts'
import { runRoutes } from './routes/runs.ts'
import { sessionRoutes } from './routes/sessions.ts'
import { listTools } from './routes/tools.ts'
import { createRelay, type RelayLimits } from './sse.ts'

export type AppDeps = {
  /** `/v1` standalone, `/api/v1` in the cluster (api.md). */
  basePath: string
  broker: Broker
  tools: readonly ToolDefinition[]
  /** Absent: this server keeps none. */
  ledger?: Ledger
  identify: Identify
  /** Absent: no rate limit. */
  limiter?: RateLimiter
  cors: CorsRules
  /** Absent: any `Host` (D2.10). */
  allowedHosts?: readonly string[]
  /** Whose `X-Forwarded-For` counts: nobody's, that of so many hops, or that of these addresses. */
  trustProxy: false | number | readonly string[]
  hasExplorer: boolean
  log: Log
  /** Absent: counted for nobody. */
  metrics?: Metrics
  relay: RelayLimits
  body?: BodyLimits
}

/** The public HTTP face (api.md): what happens to a request, from top to bottom. */
export function createApp(deps: AppDeps): Express {
  const { basePath, log } = deps

  const app = express()
  app.disable('x-powered-by').disable('etag').enable('case sensitive routing')
  app.set('query parser', 'simple').set('trust proxy', deps.trustProxy)

  app.use(logRequests(log))
  app.use(constantHeaders(deps.cors))
  app.use(checkHost(deps.allowedHosts))
  app.use(cors(deps.cors)) // Answers every OPTIONS.

  const open = { '/health': { get: health }, ...(deps.hasExplorer && explorerRoutes(basePath)) }
  app.use(basePath, createRoutes(open)) // Above the rate limit and authentication, so exempt from both.

  app.use(limitRate(deps.limiter))
  app.use(authenticate(deps.identify))

  app.use(basePath, createRoutes(guardedRoutes(deps)))

  app.use(notFound(basePath))
  app.use(recover(log)) // Express brings whatever was thrown above to here: the outermost layer.
  return app
}

/** What a caller reaches that has come through all of the above. */
function guardedRoutes({ broker, log, tools, ledger, ...deps }: AppDeps): RouteTable {
  const readBody = createReadBody(createBodies(), deps.body)
  const relay = createRelay(deps.relay, { log, metrics: deps.metrics ?? NO_METRICS })
  const sessions = sessionRoutes({ broker, readBody })
  const runs = runRoutes({ broker, relay })
  const permissions = permissionRoutes({ broker, readBody })
  return {
    '/agent/run': { post: startRun({ broker, readBody, relay }) },
    '/sessions': { post: sessions.create },
    '/sessions/:id': { get: sessions.read, delete: sessions.remove },
    '/sessions/:id/messages': { post: sendMessage({ broker, readBody, relay }) },
    '/sessions/:id/permissions/:request_id': { post: permissions.reply },
    '/permissions': { get: permissions.list },
    '/tools': { get: listTools(tools) },
    '/customers/:id/ledger': { get: customerLedger(ledger) },
    '/runs': { get: runs.list },
    '/runs/:run_id': { get: runs.read, delete: runs.cancel },
    '/runs/:run_id/events': { get: runs.follow },
  }
}
