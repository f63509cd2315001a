import type { RedisLink } from '../../shared/broker/redis-link.ts'
import type { TenantId } from '../../shared/tenant.ts'
import type { ConfigBell } from '../../shared/tenant-config/live-configs.ts'

const CHANNEL = 'config'

/** The bell of the cluster: one Redis channel that every process listens on. A lost message is found by the poll. */
export const createRedisConfigBell = (link: Pick<RedisLink, 'publish' | 'listen' | 'unlisten'>): ConfigBell => ({
  ring(tenant) {
    link.publish(CHANNEL, Buffer.from(tenant)).catch(() => {})
  },
  async listen(onRing) {
    await link.listen(CHANNEL, (message) => onRing(message.toString() as TenantId))
    return () => link.unlisten(CHANNEL)
  },
})

/** The standalone form has no other process to notify. */
export const SILENT_BELL: ConfigBell = { ring: () => {}, listen: async () => async () => {} }
