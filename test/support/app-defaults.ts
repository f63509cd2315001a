import type { AppDeps } from '../../services/gateway/app.ts'
import { createOpenIdentify } from '../../services/gateway/identify.ts'
import { EventStreams } from '../../services/gateway/streams/event-streams.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import { DIALECT_NAMES } from '../../shared/platform/config/dialects.ts'
import type { Idempotency } from '../../shared/platform/store/idempotency.ts'
import { MemoryEventLog } from '../../shared/tenancy/events/memory.ts'

export const NO_TOOLS: AppDeps['toolBox'] = {
  tools: [],
  find: () => undefined,
  policyOf: () => 'deny',
  problemWith: async () => undefined,
}

/** Each key is new. */
const NO_KEYS: Idempotency = {
  reserve: async () => ({ state: 'reserved' }),
  replace: async () => true,
  release: async () => true,
}

/** The dependencies of a gateway's app without a broker and a log. Everything optional is off, except the explorer. */
export const APP_DEFAULTS = {
  basePath: '/v1',
  toolBox: NO_TOOLS,
  identify: createOpenIdentify(),
  eventStreams: new EventStreams(new MemoryEventLog()),
  authentication: 'none',
  cors: { origins: [], allowHeaders: [], exposeHeaders: [] },
  trustProxy: false,
  hasExplorer: true,
  dialects: DIALECT_NAMES,
  console: undefined,
  startKeys: NO_KEYS,
  facts: { version: '0.0.0', model: null, permissionTimeoutMs: 300_000, runResumeMs: 30_000, rateLimitRpm: 0 },
  relay: { keepaliveMs: 15_000 },
  ledger: undefined,
  decided: undefined,
  usage: undefined,
  files: undefined,
  config: undefined,
  transcription: undefined,
  flows: undefined,
  dispatches: undefined,
  plans: undefined,
  limiter: undefined,
  tenantLimiter: undefined,
  tenantRequests: undefined,
  allowedHosts: undefined,
  isLocal: false,
  isHeapHigh: () => false,
  metrics: NO_METRICS,
} as const
