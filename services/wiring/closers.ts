import type { Closer } from '../../shared/kernel/shutdown.ts'
import type { RedisLink } from '../../shared/platform/redis/link.ts'

/** For each closer. */
const CLOSE_MS = 5_000

type Common = {
  closeTools(): Promise<void>
  tenantConfig: { close(): Promise<void> } | undefined
  events: { close(): Promise<void> }
  store: { close(): Promise<void> } | undefined
  link: Pick<RedisLink, 'close'>
  /** The ops listener, which closes last. */
  ops: { close: Closer }
}

/** Closes what every process of the cluster has, after its own work has ended. */
export const commonClosers = ({ closeTools, tenantConfig, events, store, link, ops }: Common): Closer[] => [
  { name: 'tools', deadlineMs: CLOSE_MS, close: closeTools },
  { name: 'tenant configuration', deadlineMs: CLOSE_MS, close: async () => tenantConfig?.close() },
  { name: 'events', deadlineMs: CLOSE_MS, close: () => events.close() },
  { name: 'store', deadlineMs: CLOSE_MS, close: async () => store?.close() },
  { name: 'redis', deadlineMs: CLOSE_MS, close: link.close },
  ops.close,
]
