import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import type { RedisLink } from '../../shared/platform/redis/link.ts'
import { createMemoryRunPlaces } from '../../shared/tenancy/limits/memory-places.ts'
import type { RunPlaces } from '../../shared/tenancy/limits/port.ts'
import { createRedisRunPlaces } from '../../shared/tenancy/limits/redis-places.ts'
import { createMemoryRateLimiter } from '../../shared/tenancy/rate/memory.ts'
import type { RateLimiter } from '../../shared/tenancy/rate/port.ts'
import { createRedisRateLimiter } from '../../shared/tenancy/rate/redis.ts'
import type { ConfigBell } from '../../shared/tenancy/tenant-config/live-configs.ts'

const CHANNEL = 'config'

/** The bell of the cluster: one Redis channel that every process listens on. A lost message is found by the poll. */
export const createRedisConfigBell = (link: Pick<RedisLink, 'publish' | 'subscribe' | 'unsubscribe'>): ConfigBell => ({
  ring(tenant) {
    link.publish(CHANNEL, Buffer.from(tenant)).catch(() => {})
  },
  async listen(onRing) {
    await link.subscribe(CHANNEL, (message) => onRing(message.toString() as TenantId))
    return () => link.unsubscribe(CHANNEL)
  },
})

/** The standalone form has no other process to notify. */
const SILENT_BELL: ConfigBell = { ring: () => {}, listen: async () => async () => {} }

/** `limiter` counts the requests of tenants that have a limit of their own. */
type SharedParts = { form: Form; bell: ConfigBell; places: RunPlaces; limiter: RateLimiter }

/** The limiter's own limit: each tenant has its own. */
const perMinute = Number.POSITIVE_INFINITY

/** The parts of the tenants' configuration that the processes of a cluster share over Redis, with the log that tells of them. */
export const createClusterParts = (
  link: Pick<RedisLink, 'publish' | 'subscribe' | 'unsubscribe' | 'run'>,
  log: Log,
): SharedParts & { log: Log } => ({
  form: 'cluster',
  bell: createRedisConfigBell(link),
  places: createRedisRunPlaces(link.run),
  limiter: createRedisRateLimiter({ run: link.run, perMinute, fallback: createMemoryRateLimiter({ perMinute }), log }),
  log,
})

/** The same for a process that is alone. */
export const createLocalParts = (): SharedParts => ({
  form: 'standalone',
  bell: SILENT_BELL,
  places: createMemoryRunPlaces(),
  limiter: createMemoryRateLimiter({ perMinute }),
})
