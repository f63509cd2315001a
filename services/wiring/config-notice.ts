import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import type { RedisLink } from '../../shared/platform/redis/link.ts'
import { SINGLE_PROCESS } from '../../shared/tenancy/limits/holds.ts'
import { MemoryRunPlaces } from '../../shared/tenancy/limits/memory-places.ts'
import type { BudgetHolds, RunPlaces } from '../../shared/tenancy/limits/port.ts'
import { createRedisHolds } from '../../shared/tenancy/limits/redis-holds.ts'
import { createRedisRunPlaces } from '../../shared/tenancy/limits/redis-places.ts'
import { MemoryRateLimiter } from '../../shared/tenancy/rate/memory.ts'
import type { RateLimiter } from '../../shared/tenancy/rate/port.ts'
import { RedisRateLimiter } from '../../shared/tenancy/rate/redis.ts'
import type { Rooms } from '../../shared/tenancy/room/port.ts'
import { createRedisRooms } from '../../shared/tenancy/room/redis-rooms.ts'
import { MemoryRooms } from '../../shared/tenancy/room/rooms.ts'
import type { ConfigNotice } from '../../shared/tenancy/tenant-config/live-configs.ts'

const CHANNEL = 'config'

/** The notice of the cluster: one Redis channel that every process listens on. When a message is lost, the next poll finds the change. */
export const createRedisConfigNotice = (
  link: Pick<RedisLink, 'publish' | 'subscribe' | 'unsubscribe'>,
): ConfigNotice => ({
  send(tenant) {
    link.publish(CHANNEL, Buffer.from(tenant)).catch(() => {})
  },
  async listen(onNotice) {
    await link.subscribe(CHANNEL, (message) => onNotice(message.toString() as TenantId))
    return () => link.unsubscribe(CHANNEL)
  },
})

/** The standalone form has no other process to notify. */
const NO_NOTICE: ConfigNotice = { send: () => {}, listen: async () => async () => {} }

/** `limiter` counts the requests of tenants that have a limit of their own. */
type SharedParts = {
  form: Form
  notice: ConfigNotice
  places: RunPlaces
  holds: BudgetHolds
  rooms: Rooms
  limiter: RateLimiter
}

/** The limiter itself has no limit: each tenant has its own. */
const perMinute = Number.POSITIVE_INFINITY

/** The parts of the tenants' configuration that the processes of a cluster share over Redis, and the log in which they report problems. */
export const createClusterParts = (
  link: Pick<RedisLink, 'publish' | 'subscribe' | 'unsubscribe' | 'run' | 'prefix'>,
  log: Log,
): SharedParts & { log: Log } => ({
  form: 'cluster',
  notice: createRedisConfigNotice(link),
  places: createRedisRunPlaces(link),
  holds: createRedisHolds(link.run),
  rooms: createRedisRooms(link.run),
  limiter: new RedisRateLimiter({ run: link.run, perMinute, fallback: new MemoryRateLimiter({ perMinute }), log }),
  log,
})

/** The shared parts of the standalone form, where no other process exists. */
export const createLocalParts = (): SharedParts => ({
  form: 'standalone',
  notice: NO_NOTICE,
  places: new MemoryRunPlaces(),
  holds: SINGLE_PROCESS,
  rooms: new MemoryRooms(),
  limiter: new MemoryRateLimiter({ perMinute }),
})
