import { createRedisMembers } from '../../shared/cluster/members/redis-members.ts'
import type { MemberReadiness } from '../../shared/cluster/relay/membership.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Closer } from '../../shared/kernel/shutdown.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { redisOf } from '../../shared/platform/config/redis-place.ts'
import { openRedisLink, type RedisLink } from '../../shared/platform/redis/link.ts'
import { waitForRedis } from '../../shared/platform/redis/wait-for-redis.ts'
import { RedisEventLog } from '../../shared/tenancy/events/redis-log.ts'
import { createBullQueue } from '../../shared/work/queue/bullmq.ts'
import type { JobQueue, QueueMonitor } from '../../shared/work/queue/port.ts'
import { type Ops, openOps } from '../ops/open-ops.ts'
import type { Checks } from '../ops/readiness.ts'
import { createClusterParts } from './config-notice.ts'
import type { OpenedStore } from './open-store.ts'
import { type OpenedTenantConfig, openTenantConfig } from './open-tenant-config.ts'
import type { Opened } from './process.ts'

const ID_PREFIX = { gateway: 'gw', worker: 'wk', executor: 'ex' } as const

/** For each closer, beyond its share of DRAIN_SECS. */
const CLOSE_MS = 5_000

type MaybeStore = OpenedStore | undefined

export type Opening<S extends MaybeStore> = {
  role: keyof typeof ID_PREFIX
  settings: Settings
  log: Log
  openStore(settings: Settings['store'], log: Log): Promise<S>
}

/** The parts that every process of the cluster has. */
export type CommonParts<S extends MaybeStore> = Pick<Ops, 'metrics' | 'isHeapHigh' | 'show'> & {
  link: RedisLink
  store: S
  events: RedisEventLog
  tenantConfig: OpenedTenantConfig | undefined
  queue: JobQueue & QueueMonitor
  /** Makes the process a member of the cluster. Waits for a Redis that is slow to answer. */
  join(relay: { join(): Promise<void> }): Promise<void>
  /** A part of the process to close; with `drainMs` it may take that long besides. */
  closer(name: string, close: () => unknown, drainMs?: number): Closer
}

/** The parts that one role adds. */
export type RoleParts = {
  relay: { readonly epoch: number; readiness(): MemberReadiness; stop(): Promise<void> }
  /** The URL at which the process serves the API. */
  url?: string
  /** Closers of the role's work, which must end before the process leaves the cluster. */
  work: Closer[]
  /** Closers of the parts that the work needs, closed after it. */
  rest: Closer[]
  closeTools(): Promise<void>
  /** Resolves when the process is ready; by default it is ready at once. */
  whenReady?: Promise<void>
}

/**
 * Opens a process of the cluster around the parts of its role. The process is a member once `build` has resolved. It
 * closes the parts in the opposite order.
 */
export async function openClusterProcess<S extends MaybeStore>(
  { role, settings, log, openStore }: Opening<S>,
  build: (common: CommonParts<S>) => Promise<RoleParts>,
): Promise<Opened> {
  const ops = await openOps(settings.ops, { form: 'cluster', log })
  const store = await openStore(settings.store, log)
  const link = await openLink(settings.redis, log)
  const members = createRedisMembers(link)
  ops.show({ members: () => members.list() })
  const events = new RedisEventLog(link, log)
  const tenantConfig = await openTenantConfig(settings.tenants, {
    ...{ store, ...createClusterParts(link, log), events },
    metrics: ops.metrics,
  })
  const queue = ops.watchQueue(createBullQueue(...redisOf(settings.redis)))
  const join: CommonParts<S>['join'] = (relay) => waitForRedis(() => relay.join(), { log })
  const common = { ...ops, link, store, events, tenantConfig, queue, join, closer }
  const { relay, url, work, rest, closeTools, whenReady } = await build(common)
  const ready = () => ops.ready(clusterChecks(() => relay.readiness(), link))
  if (whenReady) void whenReady.then(ready)
  else ready()
  return {
    ready: { role, id: `${ID_PREFIX[role]}_${relay.epoch}`, ...(url !== undefined && { url }), ops_url: ops.url },
    closers: [
      ops.drain,
      ...work,
      closer('membership', () => relay.stop()),
      ...rest,
      closer('queue', () => queue.close()),
      closer('tools', closeTools),
      closer('tenant configuration', () => tenantConfig?.close()),
      closer('events', () => events.close()),
      closer('store', () => store?.close()),
      closer('redis', link.close),
      ops.close,
    ],
  }
}

const closer: CommonParts<MaybeStore>['closer'] = (name, close, drainMs = 0) => ({
  name,
  deadlineMs: drainMs + CLOSE_MS,
  close,
})

/** Opens this process's connections to Redis. Waits for one that is slow to answer. */
function openLink(settings: Settings['redis'], log: Log): Promise<RedisLink> {
  const [url, options] = redisOf(settings)
  return waitForRedis(() => openRedisLink(url, { ...options, warn: (message) => log.warn(message) }), { log })
}

/** Without Redis, or while it has no memory for writes, no process can renew its lease, so only that is reported. */
const clusterChecks = (
  readiness: () => Pick<MemberReadiness, 'isBusAway' | 'isMember'>,
  { isFull }: Pick<RedisLink, 'isFull'>,
): Checks => ({
  redis: () => !readiness().isBusAway,
  redis_memory: () => !isFull(),
  membership: () => readiness().isBusAway || isFull() || readiness().isMember,
})
