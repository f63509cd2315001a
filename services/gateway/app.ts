import { parse } from 'node:querystring'
import express, { type Express, type RequestHandler } from 'express'
import type { Ledger } from '../../shared/agent/customers/store/ledger.ts'
import type { Broker } from '../../shared/cluster/commands/broker.ts'
import type { DecidedPermissions } from '../../shared/cluster/permissions/decided.ts'
import { invalidRequest } from '../../shared/kernel/errors.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import { createBodies } from '../../shared/platform/api/bodies.ts'
import type { Authentication } from '../../shared/platform/api/document.ts'
import type { DialectName } from '../../shared/platform/config/dialects.ts'
import type { Idempotency } from '../../shared/platform/store/idempotency.ts'
import type { Identify } from '../../shared/tenancy/auth/port.ts'
import type { TenantRequests } from '../../shared/tenancy/limits/tenant-requests.ts'
import type { RateLimiter } from '../../shared/tenancy/rate/port.ts'
import type { UsageReport } from '../../shared/tenancy/usage/report.ts'
import { notFound, recover, refuseInWords } from '../http/errors.ts'
import type { IsHeapHigh } from '../http/heap.ts'
import { checkHost, refuseForeignPages } from '../http/host.ts'
import { inOrder } from '../http/in-order.ts'
import { hintWith } from '../http/nearest-path.ts'
import { logRequests, traceRequests } from '../http/request-log.ts'
import { createRoutes, type RouteTable } from '../http/routes.ts'
import { type BodyLimits, createCheckValue, createReadBody } from './bodies/body.ts'
import { dialectRoutes } from './dialects/dialects.ts'
import { answersWhileHeapIsHigh, whileHeapIsLow } from './middleware/admission.ts'
import { authenticate, withScopes } from './middleware/auth.ts'
import { type CorsRules, constantHeaders, cors } from './middleware/cors.ts'
import { limitRate, limitTenant, limitTenantRate } from './middleware/rate-limit.ts'
import type { ConfigSurface } from './routes/config/enabled.ts'
import { configRoutes } from './routes/config.ts'
import { type ConsoleSettings, consoleAtBrokenPath, consoleRoutes } from './routes/console.ts'
import { customerLedger } from './routes/customers.ts'
import { explorerRoutes } from './routes/docs.ts'
import { followEvents } from './routes/events.ts'
import { type FileSurface, fileRoutes, offerUploads } from './routes/files.ts'
import { batchRoutes } from './routes/flows/batches.ts'
import { type DispatchSurface, dispatchRoutes } from './routes/flows/dispatches.ts'
import { flowMemoryRoutes } from './routes/flows/flow-memory.ts'
import { flowRunRoutes } from './routes/flows/flow-runs.ts'
import type { FlowSurface } from './routes/flows/flows.ts'
import { flowRoutes } from './routes/flows/flows.ts'
import { folderFileRoutes } from './routes/folder-files.ts'
import { describeCaller, type ServerFacts } from './routes/me.ts'
import { permissionRoutes, type ReplyToolBox } from './routes/permissions.ts'
import { type PlanSurface, planRoutes } from './routes/plans.ts'
import { runRoutes } from './routes/runs.ts'
import { sessionRoutes } from './routes/sessions.ts'
import { type ListedTools, listTools } from './routes/tools.ts'
import { type TranscriptionDeps, transcribeUpload } from './routes/transcriptions.ts'
import { showUsage } from './routes/usage.ts'
import { sendMessage, startRun } from './starting/answer-start.ts'
import { withAttachments } from './starting/attach.ts'
import { StartOnce } from './starting/start-once.ts'
import type { EventStreams } from './streams/event-streams.ts'
import { createRelay, type RelayLimits } from './streams/sse.ts'

/** `cors` answers these above the routes, on every path. */
const EVERYWHERE = ['OPTIONS']

/** All parameters: by default the parser leaves out those after the thousandth. */
const parseQuery = (query: string | undefined) => parse(query ?? '', '&', '=', { maxKeys: 0 })

/** The parts that need a store, and exist together. */
export type Stored = {
  ledger: Ledger
  decided: DecidedPermissions
  usage: Pick<UsageReport, 'page'>
  files: FileSurface
}

/** The parts of the runtime configuration, which exist together. */
export type Configured = {
  config: ConfigSurface
  transcription: TranscriptionDeps
  tenantRequests: Pick<TenantRequests, 'take'>
}

/** The work of executors, which needs a store. */
export type Queued = {
  flows: FlowSurface
  /** `undefined`: no history is kept (DISPATCH_STORE). */
  dispatches: DispatchSurface | undefined
  /** `undefined`: there is no plan queue (PLAN_QUEUE). */
  plans: PlanSurface | undefined
}

/** Authentication, and limits on the number of requests. */
export type Access = {
  identify: Identify
  /** The credentials that `identify` requires, for the API description. */
  authentication: Authentication
  /** `undefined` for no rate limit. */
  limiter: RateLimiter | undefined
  /** `undefined` where all requests have the same tenant. */
  tenantLimiter: RateLimiter | undefined
}

/** The hosts, pages and proxies from which requests are accepted. */
export type Origins = {
  cors: CorsRules
  /** `undefined` to accept any `Host` (D2.10). */
  allowedHosts: readonly string[] | undefined
  /** Listens on a loopback address: requests of foreign web pages are refused (D2.10). */
  isLocal: boolean
  /** Which proxies' `X-Forwarded-For` is used: none, a number of hops, or addresses and ranges. */
  trustProxy: false | number | readonly string[]
}

/** Pages that are served beside the API. */
export type Pages = {
  hasExplorer: boolean
  /** `undefined`: no console is served. */
  console: ConsoleSettings | undefined
}

export type AppDeps = {
  /** `/v1` in the standalone form, `/api/v1` in the cluster (api.md Versioning 1). */
  basePath: string
  broker: Broker
  /** The Idempotency-Keys of run starts. */
  startKeys: Idempotency
  /** The streams of tenants' events. */
  eventStreams: EventStreams
  toolBox: ReplyToolBox & ListedTools
  /** `undefined` when the process has no store. */
  stored: Stored | undefined
  /** `undefined`: runtime configuration is disabled. */
  configured: Configured | undefined
  /** `undefined` when the process has no store. */
  queued: Queued | undefined
  access: Access
  origins: Origins
  pages: Pages
  /** Formats of other products in which the API can be used, too (D31). */
  dialects: readonly DialectName[]
  facts: ServerFacts
  limits: { relay: RelayLimits; body?: Partial<BodyLimits>; isHeapHigh: IsHeapHigh }
  output: { log: Log; metrics: Metrics }
}

/** Creates the app of the public API (api.md Endpoints). A request passes these handlers from top to bottom. */
export function createApp(deps: AppDeps): Express {
  const { basePath, access, origins, pages } = deps
  const { log } = deps.output

  const app = express()
  app.disable('x-powered-by').disable('etag').enable('case sensitive routing')
  app.set('query parser', parseQuery).set('trust proxy', origins.trustProxy)

  app.use(inOrder(forAll(deps)))
  if (deps.stored) app.options(`${basePath}/files`, offerUploads)
  app.use(cors(origins.cors)) // Answers every OPTIONS request.
  if (pages.console)
    app.use(createRoutes(consoleRoutes({ basePath, ...pages.console }), EVERYWHERE), consoleAtBrokenPath(pages.console))

  const publicRoutes = {
    '/health': { get: health },
    ...(pages.hasExplorer && explorerRoutes({ basePath, authentication: access.authentication })),
  }
  app.use(basePath, createRoutes(publicRoutes, EVERYWHERE)) // Before the rate limit and authentication, so exempt from both.

  app.use(inOrder(forGuarded(deps)))
  const routes = guardedRoutes({ ...deps, broker: withAttachments(deps.broker, deps.stored?.files) })
  app.use(basePath, createRoutes(routes, EVERYWHERE))

  app.use(notFound(hintWith(basePath, { ...publicRoutes, ...routes })))
  app.use(recover(log)) // Express passes every error that was thrown above to this handler.
  return app
}

/** The first handlers of every request. */
const forAll = ({ origins, output: { log, metrics } }: AppDeps) => [
  logRequests(log, metrics),
  traceRequests(),
  constantHeaders(origins.cors),
  checkHost(origins.allowedHosts),
  origins.isLocal && refuseForeignPages(origins.cors.origins),
]

/** The handlers of every request to a guarded route. */
const forGuarded = ({ basePath, access, configured }: AppDeps) => [
  wordsForPages(basePath),
  access.limiter && limitRate(access.limiter, basePath),
  authenticate(access.identify),
  access.tenantLimiter && limitTenantRate(access.tenantLimiter, basePath),
  configured?.tenantRequests && limitTenant(configured.tenantRequests, basePath),
  refuseDryRuns(basePath),
]

/** The paths of the dialects whose clients show the body of a refusal to a person as it is. */
const SHOWN = new Set(['/ui/chat', '/ag-ui'])

/** A page, which its browser says by `Origin`, gets the message of a refusal alone, unless it asks for JSON (D31.1). */
function wordsForPages(basePath: string): RequestHandler {
  return (req, res, next) => {
    const isOfPage = req.headers.origin !== undefined && !/\bjson\b/i.test(req.headers.accept ?? '')
    if (isOfPage && req.path.startsWith(basePath) && SHOWN.has(req.path.slice(basePath.length))) refuseInWords(res)
    next()
  }
}

/** Refuses a dry run of what can only be started: it would be started (D57.1). */
function refuseDryRuns(basePath: string): RequestHandler {
  const estimated = new RegExp(`^${basePath}/(agent/run|flows/[^/]+/run|plans/submit)$`)
  return ({ method, query, path }, _res, next) => {
    if (method === 'GET' || method === 'HEAD' || query['dry_run'] === undefined || estimated.test(path)) return next()
    const message = 'dry_run is for POST /agent/run, /flows/{name}/run and /plans/submit'
    throw invalidRequest(message, { param: '/dry_run' })
  }
}

/** Answers as long as the process runs. Readiness is a matter of `/readyz` on the ops listener. */
const health: RequestHandler = (_req, res) => {
  res.json({ status: 'ok', timestamp: new Date().toISOString() })
}

/** The routes that require a token and count against the rate limit. */
function guardedRoutes(deps: AppDeps): RouteTable {
  const { broker, toolBox, stored, configured, queued, limits } = deps
  const bodies = createBodies()
  const readBody = createReadBody(bodies, limits.body)
  const relay = createRelay(limits.relay, deps.output)
  const once = new StartOnce(deps.startKeys, broker)
  const starting = { broker, relay, once, readBody }
  const sessions = sessionRoutes({ broker, readBody })
  const admit = whileHeapIsLow(limits.isHeapHigh)
  return withScopes({
    '/me': { get: describeCaller(deps) },
    '/agent/run': { post: admit(startRun(starting)) },
    '/sessions': { get: sessions.list, post: admit(sessions.create) },
    '/sessions/:id': { get: sessions.read, patch: sessions.rename, delete: sessions.remove },
    '/sessions/:id/fork': { post: admit(sessions.fork) },
    '/sessions/:id/messages': { get: sessions.messages, post: admit(sendMessage(starting)) },
    ...permissionRoutes({ broker, toolBox, decided: stored?.decided, readBody }),
    '/events': { get: followEvents({ eventStreams: deps.eventStreams, relay }) },
    '/tools': { get: listTools(toolBox) },
    '/customers/:id/ledger': { get: customerLedger(stored?.ledger) },
    ...folderFileRoutes({ broker }),
    ...runRoutes({ broker, relay, keys: deps.startKeys, readBody, admit }),
    '/usage': { get: showUsage(stored?.usage) },
    ...{ ...flowRoutes({ flows: queued?.flows, readBody }), ...flowMemoryRoutes({ flows: queued?.flows, readBody }) },
    ...flowRunRoutes({ broker, flows: queued?.flows, readBody, relay, admit }),
    ...batchRoutes({ flows: queued?.flows, readBody, bodies, files: stored?.files, admit }),
    ...dispatchRoutes({ dispatches: queued?.dispatches, relay }),
    ...planRoutes({ plans: queued?.plans, readBody, relay }),
    ...configRoutes({ config: configured?.config, readBody }),
    ...fileRoutes(stored?.files),
    '/audio/transcriptions': { post: transcribeUpload(configured?.transcription) },
    ...dialectRoutes(deps.dialects, {
      ...{ ...deps, ...deps.facts, ...deps.output, ...limits.relay, config: configured?.config },
      ...{ flows: queued?.flows, plans: queued?.plans },
      ...{ once, files: stored?.files, readBody, checkValue: createCheckValue(bodies), relay, admit },
      authentication: deps.access.authentication,
      admitAnswers: answersWhileHeapIsHigh(limits.isHeapHigh),
    }),
  })
}
