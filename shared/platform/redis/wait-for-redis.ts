import { retryUntil } from '../../kernel/async/retry.ts'
import type { Log } from '../../kernel/log.ts'

const WITHIN_MS = 20_000
const PAUSE_MS = 100

/**
 * Repeats a request to Redis that was not answered in time. For the start of a process, when no user waits for the answer: many
 * processes that start at the same time on one machine slow down each other and Redis.
 */
export async function waitForRedis<T>(
  request: () => Promise<T>,
  { log, withinMs = WITHIN_MS }: { log: Pick<Log, 'warn'>; withinMs?: number },
): Promise<T> {
  const until = performance.now() + withinMs
  let isFirst = true
  const mayPass = (cause: unknown) => {
    const isWaiting = isLate(cause) && performance.now() < until
    if (isWaiting && isFirst) log.warn('Redis does not answer in time: the start waits for it', { cause })
    isFirst = false
    return isWaiting
  }
  return retryUntil(request, { pauses: PAUSE_MS, mayPass })
}

const isLate = (cause: unknown): boolean =>
  cause instanceof Error && (/timed out|ETIMEDOUT|Connection is closed/.test(cause.message) || isLate(cause.cause))
