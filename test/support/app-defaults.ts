import type { Access, AppDeps, Configured, Origins, Pages, Queued, Stored } from '../../services/gateway/app.ts'
import { createOpenIdentify } from '../../services/gateway/open-identify.ts'
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

/** The fields of all groups side by side, as a test names them. */
export type FlatDeps = Omit<
  AppDeps,
  'stored' | 'configured' | 'queued' | 'access' | 'origins' | 'pages' | 'limits' | 'output'
> &
  Maybe<Stored> &
  Maybe<Configured> &
  Maybe<Queued> &
  Access &
  Origins &
  Pages &
  AppDeps['limits'] &
  AppDeps['output']

type Maybe<Group> = { [Name in keyof Group]: Group[Name] | undefined }

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
  facts: {
    version: '0.0.0',
    model: null,
    permissionTimeoutMs: 300_000,
    clientToolTimeoutMs: 300_000,
    runResumeMs: 30_000,
    rateLimitRpm: 0,
  },
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

/** Puts the fields into their groups. A group of which a test names only some has nothing in the others, which the test does not use. */
export function appDeps(given: Partial<FlatDeps> & Pick<FlatDeps, 'broker' | 'log'>): AppDeps {
  const { ledger, decided, usage, files, config, transcription, tenantRequests, ...flat } = {
    ...APP_DEFAULTS,
    ...given,
  }
  const { flows, dispatches, plans, identify, authentication, limiter, tenantLimiter } = flat
  const { cors, allowedHosts, isLocal, trustProxy, hasExplorer, console: pages, relay, body, isHeapHigh } = flat
  return {
    ...flat,
    stored: groupOf<Stored>({ ledger, decided, usage, files }),
    configured: groupOf<Configured>({ config, transcription, tenantRequests }),
    queued: groupOf<Queued>({ flows, dispatches, plans }),
    access: { identify, authentication, limiter, tenantLimiter },
    origins: { cors, allowedHosts, isLocal, trustProxy },
    pages: { hasExplorer, console: pages },
    limits: { relay, ...(body && { body }), isHeapHigh },
    output: { log: flat.log, metrics: flat.metrics },
  }
}

const groupOf = <Group extends object>(fields: Maybe<Group>): Group | undefined =>
  Object.values(fields).some((field) => field !== undefined) ? (fields as Group) : undefined
