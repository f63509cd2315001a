import { LRUCache } from 'lru-cache'

/** With more executions than this, some are taken for younger than they are. */
const MAX_KNOWN = 100_000

/**
 * Measures how long this process has known an execution, in milliseconds from the first question about it. `now` is a monotonic clock. The
 * time that is stored with an execution comes from the wall clock of another process, which may be wrong by hours.
 */
export function createAges(now = () => performance.now()): (traceId: string) => number {
  const since = new LRUCache<string, number>({ maxSize: MAX_KNOWN, sizeCalculation: () => 1 }) // `max` would reserve the memory of all.
  return (traceId) => {
    const at = now()
    const first = since.get(traceId) ?? at
    since.set(traceId, first)
    return at - first
  }
}
