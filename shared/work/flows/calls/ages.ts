import { createCache } from '../../../kernel/cache.ts'

/** With more executions than this, some are taken for younger than they are. */
const MAX_KNOWN = 100_000

/**
 * Measures how long this process has known an execution, in milliseconds from the first question about it. `now` is a monotonic clock. The
 * time that is stored with an execution comes from the wall clock of another process, which may be wrong by hours.
 */
export function createAges(now = () => performance.now()): (traceId: string) => number {
  const since = createCache<string, number>(MAX_KNOWN)
  return (traceId) => {
    const at = now()
    const first = since.get(traceId) ?? at
    since.set(traceId, first)
    return at - first
  }
}
