import { createApp } from '../../../../services/gateway/app.ts'
import { createTokenIdentify } from '../../../../services/gateway/identify.ts'
import { EventStreams } from '../../../../services/gateway/streams/event-streams.ts'
import type { Broker } from '../../../../shared/cluster/commands/broker.ts'
import { createLog } from '../../../../shared/kernel/log.ts'
import { NO_METRICS } from '../../../../shared/kernel/metrics.ts'
import { MemoryEventLog } from '../../../../shared/tenancy/events/memory.ts'
import { BASE_PATH, TOKEN } from '../target.ts'

/** The product's HTTP application on a broker: routing, authentication, body validation, SSE. */
export const appOn = (broker: Broker, keepaliveMs: number) =>
  createApp({
    basePath: BASE_PATH,
    broker,
    toolBox: { tools: [], find: () => undefined, policyOf: () => 'deny', problemWith: async () => undefined },
    identify: createTokenIdentify(TOKEN),
    authentication: 'api-token',
    cors: { origins: [], allowHeaders: [], exposeHeaders: [] },
    trustProxy: false,
    hasExplorer: false,
    dialects: [],
    console: undefined,
    startKeys: {
      reserve: async () => ({ state: 'reserved' }),
      replace: async () => true,
      release: async () => true,
    },
    facts: { version: '0', model: null, permissionTimeoutMs: 300_000, runResumeMs: 30_000, rateLimitRpm: 0 },
    log: createLog({ level: 'error' }),
    relay: { keepaliveMs },
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
    isLocal: false,
    isHeapHigh: () => false,
    allowedHosts: undefined,
    eventStreams: new EventStreams(new MemoryEventLog()),
    metrics: NO_METRICS,
  })
