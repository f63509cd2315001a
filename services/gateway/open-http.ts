import { providerSpecs } from '../../shared/agent/providers/catalogue.ts'
import type { Broker } from '../../shared/cluster/port.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import { openAccessWarning } from '../../shared/platform/config/auth.ts'
import type { Config } from '../../shared/platform/config/config.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import type { RedisLink } from '../../shared/platform/redis/link.ts'
import type { Idempotency } from '../../shared/platform/store/idempotency.ts'
import type { EventLog } from '../../shared/tenancy/events/port.ts'
import { UsageReport } from '../../shared/tenancy/usage/report.ts'
import type { IsHeapHigh } from '../http/heap.ts'
import { hostNames, isLoopback } from '../http/host.ts'
import { listenOn } from '../http/listen.ts'
import { createServer, type HttpServer, urlOf } from '../http/server.ts'
import type { OpenedStore } from '../wiring/open-store.ts'
import { VERSION } from '../wiring/process.ts'
import type { OpenedTenantConfig } from '../wiring/tenant-config.ts'
import { type AppDeps, createApp } from './app.ts'
import { EventStreams } from './event-streams.ts'
import type { CorsRules } from './middleware/cors.ts'
import { showOpenAccess } from './open-access.ts'
import { openIdentify } from './open-identify.ts'
import { openRateLimiters } from './open-rate-limit.ts'
import { openTranscription } from './open-transcription.ts'
import type { ConfigSurface } from './routes/config/enabled.ts'
import type { DispatchSurface } from './routes/dispatches.ts'
import type { FlowSurface } from './routes/flow-surface.ts'
import type { PlanSurface } from './routes/plans.ts'

/** Both forms serve the same paths, under different prefixes (api.md Versioning 1). */
const BASE_PATH: Record<Form, string> = { standalone: '/v1', cluster: '/api/v1' }

type HttpParts = {
  form: Form
  broker: Broker
  startKeys: Idempotency
  events: EventLog
  toolBox: AppDeps['toolBox']
  store: Pick<OpenedStore, 'ledger' | 'decided' | 'usage'> | undefined
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

/** Opens the public listener on HOST and PORT. It accepts requests when this resolves; `url` ends with the base path. */
export async function openHttp(
  config: Config,
  { form, events, store, tenantConfig, link, ...parts }: HttpParts,
): Promise<{ url: string } & Pick<HttpServer, 'drain' | 'close'>> {
  const basePath = BASE_PATH[form]
  const { log } = parts
  const { identify, authentication, close: closeIdentify } = await openIdentify(config, log)
  const { close: closeLimiter, ...limiters } = await openRateLimiters(config, { link, log })
  const transcription = await openTranscription(config, tenantConfig)
  const eventStreams = new EventStreams(events)
  const app = createApp({
    ...parts,
    ledger: store?.ledger,
    decided: store?.decided,
    usage: store && new UsageReport(store.usage),
    basePath,
    eventStreams,
    config: tenantConfig && surfaceOf(tenantConfig, config, form),
    transcription: transcription.deps,
    identify,
    authentication,
    ...limiters,
    tenantRequests: tenantConfig?.limits.requests,
    ...settingsOf(config),
  })
  const server = createServer(app)
  const address = await listenOn(server, { host: config.host, port: config.port, setting: 'PORT' })
  const openAccess = showOpenAccess(openAccessWarning(config, form), parts)
  return {
    url: `${urlOf(address)}${basePath}`,
    drain: () => server.drain(),
    async close(streamsMs, answersMs) {
      openAccess.close()
      eventStreams.endAll()
      await server.close(streamsMs, answersMs)
      await Promise.all([closeIdentify(), closeLimiter(), transcription.close()])
    },
  }
}

const surfaceOf = (
  tenantConfig: OpenedTenantConfig,
  { adminScope }: Pick<Config, 'adminScope'>,
  form: Form,
): ConfigSurface => ({
  ...tenantConfig,
  adminScope,
  providers: () => providerSpecs({ hasDemo: form === 'standalone' }),
})

const settingsOf = (config: Config) => ({
  cors: corsOf(config),
  allowedHosts: hostNames(config),
  isLocal: isLoopback(config.host),
  trustProxy: config.trustProxy,
  hasExplorer: config.hasExplorer,
  relay: config,
  facts: {
    version: VERSION,
    model: config.model?.model ?? null,
    permissionTimeoutMs: config.permissionTimeoutMs,
    runResumeMs: config.runResumeMs,
    rateLimitRpm: config.rateLimitRpm,
  },
  body: { tenantShare: config.tenantShare },
})

/** The headers and methods with which a page starts a run once, follows it, comes back, and renames a session (D17b). */
const RESUME = {
  methods: ['PATCH'],
  allow: ['Last-Event-ID', 'Idempotency-Key'],
  expose: ['X-Run-ID', 'X-Trace-ID', 'Retry-After', 'Idempotency-Replayed'],
}

const corsOf = (config: Config): CorsRules => ({
  origins: config.corsOrigins,
  allowMethods: config.corsResume ? RESUME.methods : [],
  allowHeaders: [...(config.corsResume ? RESUME.allow : []), ...config.corsAllowHeaders],
  exposeHeaders: [...(config.corsResume ? RESUME.expose : []), ...config.corsExposeHeaders],
})
