import { providerSpecs } from '../../shared/agent/providers/catalogue.ts'
import type { Broker } from '../../shared/cluster/commands/broker.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import { openAccessWarning } from '../../shared/platform/config/auth.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { redisOf } from '../../shared/platform/config/redis-place.ts'
import type { RedisLink } from '../../shared/platform/redis/link.ts'
import type { Idempotency } from '../../shared/platform/store/idempotency.ts'
import type { EventLog } from '../../shared/tenancy/events/port.ts'
import { MemoryRateLimiter } from '../../shared/tenancy/rate/memory.ts'
import type { RateLimiter } from '../../shared/tenancy/rate/port.ts'
import { RedisRateLimiter } from '../../shared/tenancy/rate/redis.ts'
import { UsageReport } from '../../shared/tenancy/usage/report.ts'
import type { IsHeapHigh } from '../http/heap.ts'
import { hostNames, isLoopback } from '../http/host.ts'
import { inTurns } from '../http/in-turns.ts'
import { listenOn } from '../http/listen.ts'
import { createServer, type HttpServer, urlOf } from '../http/server.ts'
import type { OpenedStore } from '../wiring/open-store.ts'
import type { OpenedTenantConfig } from '../wiring/open-tenant-config.ts'
import { VERSION } from '../wiring/process.ts'
import { type AppDeps, type Configured, createApp, type Origins, type Queued, type Stored } from './app.ts'
import type { ReceiveUpload } from './bodies/upload.ts'
import type { CorsRules } from './middleware/cors.ts'
import { openConsole } from './open-console.ts'
import { openIdentify } from './open-identify.ts'
import { type OpenedUploads, openUploads } from './open-uploads.ts'
import { EventStreams } from './streams/event-streams.ts'

/** Standalone and cluster serve the same paths, under different prefixes (api.md Versioning 1). */
const BASE_PATH: Record<Form, string> = { standalone: '/v1', cluster: '/api/v1' }

/** The host in a listener's URL when it listens on all addresses of the machine. */
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
  queued: Queued | undefined
  /** The Redis connection of a process in the cluster, reused for a shared rate limit. */
  link: Pick<RedisLink, 'run'> | undefined
  isHeapHigh: IsHeapHigh
  log: Log
  metrics: Metrics
}

/** `url` ends with the base path. `consoleUrl` is set when `/` leads to the console. */
type OpenedHttp = { url: string; consoleUrl: string | undefined } & Pick<HttpServer, 'drain' | 'close'>

/** Opens the public listener on HOST and PORT. It accepts requests when this resolves. */
export async function openHttp(settings: HttpSettings, parts: HttpParts): Promise<OpenedHttp> {
  const { form, store, tenantConfig, link, isHeapHigh, log, metrics } = parts
  const { broker, startKeys, toolBox, queued } = parts
  const basePath = BASE_PATH[form]
  const { close: closeIdentify, ...identity } = await openIdentify(settings.identify, log)
  const { close: closeLimiter, ...limiters } = await openRateLimiters(settings.rateLimits, { link, log })
  const uploads = await openUploads(settings.uploads)
  const eventStreams = new EventStreams(parts.events)
  const pages = await openConsole(settings.console, { form, authentication: identity.authentication, log })
  const app = createApp({
    ...{ basePath, broker, startKeys, toolBox, queued, eventStreams },
    stored: store && storedOf(store, uploads),
    configured: tenantConfig && configuredOf(tenantConfig, { settings, form, receive: uploads.receive }),
    access: { ...identity, ...limiters },
    origins: originsOf(settings),
    pages: { hasExplorer: settings.hasExplorer, console: pages },
    dialects: settings.dialects,
    facts: { version: VERSION, ...settings.facts },
    limits: { relay: settings.streams, body: { tenantShare: settings.tenantShare }, isHeapHigh },
    output: { log, metrics },
  })
  const server = createServer(inTurns(app))
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

const storedOf = (store: NonNullable<HttpParts['store']>, { receive, enter, fetchFile }: OpenedUploads): Stored => ({
  ledger: store.ledger,
  decided: store.decided,
  usage: new UsageReport(store.usage),
  files: { files: store.files, receive, enter, fetchFile },
})

type Configuring = { settings: HttpSettings; form: Form; receive: ReceiveUpload }

function configuredOf(tenantConfig: OpenedTenantConfig, { settings, form, receive }: Configuring): Configured {
  const { configs, credentials, egress, limits } = tenantConfig
  const { adminScope } = settings
  const providers = () => providerSpecs({ hasDemo: form === 'standalone' })
  return {
    config: { ...tenantConfig, adminScope, providers },
    transcription: { configs, credentials, egress, assertBudget: limits.assertBudget, receive },
    tenantRequests: limits.requests,
  }
}

const originsOf = ({ listen, cors }: HttpSettings): Origins => ({
  cors: corsOf(cors),
  allowedHosts: hostNames(listen),
  isLocal: isLoopback(listen.host),
  trustProxy: listen.trustProxy,
})

/** The headers and methods that a page needs to start a run exactly once, follow it, reconnect, and rename a session (D17b). */
const RESUME = {
  methods: ['PATCH'],
  allow: ['Last-Event-ID', 'Idempotency-Key', 'X-On-Disconnect', 'X-Priority', 'X-Wait-Secs'],
  expose: ['X-Run-ID', 'X-Trace-ID', 'Retry-After', 'Idempotency-Replayed', 'X-Ignored-Fields'],
}

const corsOf = ({ corsOrigins, corsResume, corsAllowHeaders, corsExposeHeaders }: HttpSettings['cors']): CorsRules => ({
  origins: corsOrigins,
  allowMethods: corsResume ? RESUME.methods : [],
  allowHeaders: [...(corsResume ? RESUME.allow : []), ...corsAllowHeaders],
  exposeHeaders: [...(corsResume ? RESUME.expose : []), ...corsExposeHeaders],
})

const WARN_EVERY_MS = 3_600_000

/** Shows whether the API is open to the network without a token, and if so repeats `warning` in the log until it is closed. */
export function showOpenAccess(
  warning: string | undefined,
  { log, metrics, everyMs = WARN_EVERY_MS }: { log: Log; metrics: Metrics; everyMs?: number },
): { close(): void } {
  metrics.gauge('open_to_network', () => (warning === undefined ? 0 : 1))
  if (warning === undefined) return { close: () => {} }
  log.warn(warning)
  const timer = setInterval(() => log.warn(warning), everyMs).unref()
  return { close: () => clearInterval(timer) }
}

type LimiterParts = {
  /** The Redis connection that the process already has, if any. */
  link: Pick<RedisLink, 'run'> | undefined
  log: Log
}

type OpenedLimiters = {
  limiter: RateLimiter | undefined
  /** `undefined` without OIDC: all requests have the same tenant then. */
  tenantLimiter: RateLimiter | undefined
  close(): Promise<void>
}

/**
 * Creates the limiters that RATE_LIMIT_RPM and RATE_LIMIT_STORE describe (D1.3). `close` closes the connection that it opened
 * for them.
 */
async function openRateLimiters(
  { rateLimitRpm: perMinute, rateLimitStore, oidcIssuer, redis }: Settings['http']['rateLimits'],
  { link, log }: LimiterParts,
): Promise<OpenedLimiters> {
  if (perMinute === 0) return { limiter: undefined, tenantLimiter: undefined, close: async () => {} }
  const own = rateLimitStore === 'redis' && !link ? await openLink(redis) : undefined
  const shared = rateLimitStore === 'redis' ? (link ?? own) : undefined
  const create = () => {
    const memory = new MemoryRateLimiter({ perMinute })
    return shared ? new RedisRateLimiter({ run: shared.run, perMinute, fallback: memory, log }) : memory
  }
  const tenantLimiter = oidcIssuer === undefined ? undefined : create()
  return { limiter: create(), tenantLimiter, close: async () => own?.close() }
}

/** The standalone form uses Redis for the shared rate limit only, so it loads the client here. */
async function openLink(settings: Settings['redis']): Promise<RedisLink> {
  const { openRedisLink } = await import('../../shared/platform/redis/link.ts')
  return openRedisLink(...redisOf(settings))
}
