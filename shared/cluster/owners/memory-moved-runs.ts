import type { LRUCache } from 'lru-cache'
import { createCache } from '../../kernel/cache.ts'
import type { MemoryBus } from '../bus/memory-bus.ts'
import type { MovedRuns } from './moved-runs.ts'

/** The epochs of the workers that have the runs, by tenant and run. */
export type MovedRunTable = LRUCache<string, number>

const KEEP_MS = 86_400_000

export const createMovedRunTable = (max: number): MovedRunTable => createCache(max, { ttl: KEEP_MS, ttlResolution: 0 })

/** The moved runs as one process of the cluster reaches them. */
export const createMemoryMovedRuns = (bus: Pick<MemoryBus, 'ask'>, moved: MovedRunTable): MovedRuns => ({
  record: (tenant, runIds, epoch) =>
    bus.ask(() => {
      for (const runId of runIds) moved.set(`${tenant} ${runId}`, epoch)
    }),
  find: (tenant, runId) => bus.ask(() => moved.get(`${tenant} ${runId}`)),
})
