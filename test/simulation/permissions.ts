import type { MemoryBus } from '../../shared/cluster/bus/memory-bus.ts'
import type { PermissionStore } from '../../shared/cluster/permissions/store.ts'
import type { Owner, Time } from './time.ts'

const BELL_MS = 0.2

/** The store of permission requests as one process reaches it: over its connection, and with decisions that come as messages. */
export function permissionsOver(
  store: PermissionStore,
  { bus, owner, time }: { bus: MemoryBus; owner: Owner; time: Time },
): PermissionStore {
  return {
    open: async (request) => bus.ask(() => store.open(request)),
    decide: async (...args) => bus.ask(() => store.decide(...args)),
    find: async (request) => bus.ask(() => store.find(request)),
    async decision(request) {
      const decided = await store.decision(request)
      await time.pause(BELL_MS, owner)
      return decided
    },
    list: async (tenant, page, isLive) => bus.ask(() => store.list(tenant, page, isLive)),
    forget: async (...args) => bus.ask(() => store.forget(...args)),
  }
}
