import { createApp } from '../../../../services/gateway/app.ts'
import { createTokenIdentify } from '../../../../services/gateway/open-identify.ts'
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
    startKeys: { reserve: async () => ({ state: 'reserved' }), replace: async () => true, release: async () => true },
    eventStreams: new EventStreams(new MemoryEventLog()),
    stored: undefined,
    configured: undefined,
    queued: undefined,
    access: {
      identify: createTokenIdentify(TOKEN),
      authentication: 'api-token',
      limiter: undefined,
      tenantLimiter: undefined,
    },
    origins: {
      cors: { origins: [], allowHeaders: [], exposeHeaders: [] },
      allowedHosts: undefined,
      isLocal: false,
      trustProxy: false,
    },
    pages: { hasExplorer: false, console: undefined },
    dialects: [],
    facts: {
      version: '0',
      model: null,
      permissionTimeoutMs: 300_000,
      clientToolTimeoutMs: 300_000,
      runResumeMs: 30_000,
      rateLimitRpm: 0,
    },
    limits: { relay: { keepaliveMs }, isHeapHigh: () => false },
    output: { log: createLog({ level: 'error' }), metrics: NO_METRICS },
  })
