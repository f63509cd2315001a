import { providerSpecs } from '../../shared/agent/providers/catalogue.ts'
import type { Broker } from '../../shared/cluster/commands/broker.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import { openAccessWarning } from '../../shared/platform/config/auth.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { RedisLink } from '../../shared/platform/redis/link.ts'
import type { Idempotency } from '../../shared/platform/store/idempotency.ts'
import type { EventLog } from '../../shared/tenancy/events/port.ts'
import { UsageReport } from '../../shared/tenancy/usage/report.ts'
import type { IsHeapHigh } from '../http/heap.ts'
import { hostNames, isLoopback } from '../http/host.ts'
import { listenOn } from '../http/listen.ts'
import { createServer, type HttpServer, urlOf } from '../http/server.ts'
import type { OpenedStore } from '../wiring/open-store.ts'
import type { OpenedTenantConfig } from '../wiring/open-tenant-config.ts'
import { VERSION } from '../wiring/process.ts'
import { type AppDeps, createApp } from './app.ts'
import type { ReceiveUpload } from './bodies/upload.ts'
import type { CorsRules } from './middleware/cors.ts'
import { showOpenAccess } from './open-access.ts'
import { openConsole } from './open-console.ts'
import { openIdentify } from './open-identify.ts'
import { openRateLimiters } from './open-rate-limit.ts'
import { openUploads } from './open-uploads.ts'
import type { ConfigSurface } from './routes/config/enabled.ts'
import type { DispatchSurface } from './routes/flows/dispatches.ts'
import type { FlowSurface } from './routes/flows/flow-surface.ts'
import type { PlanSurface } from './routes/plans.ts'
import type { TranscriptionDeps } from './routes/transcriptions.ts'
import { EventStreams } from './streams/event-streams.ts'

/** Both forms serve the same paths, under different prefixes (api.md Versioning 1). */
const BASE_PATH: Record<Form, string> = { standalone: '/v1', cluster: '/api/v1' }

/** As the host of a listener's URL: all addresses of the machine. */
const ANY_ADDRESS = /0\.0\.0\.0|\[::\]/

type HttpSettings = Settings['http']

type HttpParts = {
  form: Form
  broker: Broker
  startKeys: Idempotency
  events: EventLog
  toolBox: AppDeps['toolBox']
  store: Pick<OpenedStore, 'ledger' | 'decided' | 'usage' | 'files'> | undefined
  /** `undefined`: runtime configuration is disabled. */
  tenantConfig: OpenedTenantConfig | undefined
  /** `undefined` when the process has no store. */
  flows: FlowSurface | undefined
  /** `undefined` when the process has no store, or keeps no history. */
  dispatches: DispatchSurface | undefined
  /** `undefined` when the process has no store, or no plan queue. */
  plans: PlanSurface | undefined
  /** The Redis connection of a process in the cluster, reused for a shared rate limit. */
  link: Pick<RedisLink, 'run'> | undefined
  isHeapHigh: IsHeapHigh
  log: Log
  metrics: Metrics
}

/** `url` ends with the base path. `consoleUrl` is where `/` leads to the console, if it does. */
type OpenedHttp = { url: string; consoleUrl: string | undefined } & Pick<HttpServer, 'drain' | 'close'>

/** Opens the public listener on HOST and PORT. It accepts requests when this resolves. */
export async function openHttp(
  settings: HttpSettings,
  { form, events, store, tenantConfig, link, ...parts }: HttpParts,
): Promise<OpenedHttp> {
  const basePath = BASE_PATH[form]
  const { log } = parts
  const { identify, authentication, close: closeIdentify } = await openIdentify(settings.identify, log)
  const { close: closeLimiter, ...limiters } = await openRateLimiters(settings.rateLimits, { link, log })
  const uploads = await openUploads(settings.uploads)
  const eventStreams = new EventStreams(events)
  const pages = await openConsole(settings.console, { form, authentication, log })
  const app = createApp({
    ...parts,
    ...storedOf(store, uploads.receive),
    basePath,
    eventStreams,
    config: tenantConfig && surfaceOf(tenantConfig, settings, form),
    transcription: tenantConfig && transcriptionOf(tenantConfig, uploads.receive),
    identify,
    authentication,
    ...limiters,
    tenantRequests: tenantConfig?.limits.requests,
    console: pages,
    ...rulesOf(settings),
  })
  const server = createServer(app)
  const address = await listenOn(server, { ...settings.listen, setting: 'PORT' })
  const openAccess = showOpenAccess(openAccessWarning(settings.access, form), parts)
  return {
    url: `${urlOf(address)}${basePath}`,
    consoleUrl: pages?.isHome ? urlOf(address).replace(ANY_ADDRESS, '127.0.0.1') : undefined,
    drain: () => server.drain(),
    async close(streamsMs, answersMs) {
      openAccess.close()
      eventStreams.endAll()
      await server.close(streamsMs, answersMs)
      await Promise.all([closeIdentify(), closeLimiter(), uploads.close()])
    },
  }
}

const storedOf = (store: HttpParts['store'], receive: ReceiveUpload) => ({
  files: store && { files: store.files, receive },
  ledger: store?.ledger,
  decided: store?.decided,
  usage: store && new UsageReport(store.usage),
})

const surfaceOf = (tenantConfig: OpenedTenantConfig, { adminScope }: HttpSettings, form: Form): ConfigSurface => ({
  ...tenantConfig,
  adminScope,
  providers: () => providerSpecs({ hasDemo: form === 'standalone' }),
})

/** The proxy needs tenants' instances. */
const transcriptionOf = (tenantConfig: OpenedTenantConfig, receive: ReceiveUpload): TranscriptionDeps => {
  const { configs, credentials, egress, limits } = tenantConfig
  return { configs, credentials, egress, assertBudget: limits.assertBudget, receive }
}

const rulesOf = ({ listen, cors, hasExplorer, dialects, streams, facts, tenantShare }: HttpSettings) => ({
  cors: corsOf(cors),
  allowedHosts: hostNames(listen),
  isLocal: isLoopback(listen.host),
  trustProxy: listen.trustProxy,
  hasExplorer,
  dialects,
  relay: streams,
  facts: { version: VERSION, ...facts },
  body: { tenantShare },
})

/** The headers and methods with which a page starts a run once, follows it, comes back, and renames a session (D17b). */
const RESUME = {
  methods: ['PATCH'],
  allow: ['Last-Event-ID', 'Idempotency-Key', 'X-On-Disconnect'],
  expose: ['X-Run-ID', 'X-Trace-ID', 'Retry-After', 'Idempotency-Replayed', 'X-Ignored-Fields'],
}

const corsOf = ({ corsOrigins, corsResume, corsAllowHeaders, corsExposeHeaders }: HttpSettings['cors']): CorsRules => ({
  origins: corsOrigins,
  allowMethods: corsResume ? RESUME.methods : [],
  allowHeaders: [...(corsResume ? RESUME.allow : []), ...corsAllowHeaders],
  exposeHeaders: [...(corsResume ? RESUME.expose : []), ...corsExposeHeaders],
})
