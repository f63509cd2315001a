import { MongoError, MongoServerError } from 'mongodb'
import type { Health } from '../../health.ts'
import { storeUnavailable } from '../unavailable.ts'

/** Runs an operation of the driver under a deadline: whatever keeps it from an answer is `unavailable`. */
export type Gate = <T>(act: (signal: AbortSignal) => Promise<T>, withinMs?: number) => Promise<T>

/** Below the 3 s that callers are promised. */
const DEADLINE_MS = 2_800
/** Twenty on connections and the rest waiting for one; more would not be answered in time either. */
const MAX_IN_FLIGHT = 220
/** Once it has been away for so long, nobody waits for it any more: the keeper's pings tell when it is back. */
const GIVE_UP_MS = 3_000

export function createGate(health: Health, isReady: () => boolean): Gate {
  let inFlight = 0
  return async (act, withinMs = DEADLINE_MS) => {
    if (!isReady() || health.awayMs() > GIVE_UP_MS) throw storeUnavailable('away')
    if (inFlight >= MAX_IN_FLIGHT) throw storeUnavailable('too much at once')
    const deadline = createDeadline(Math.min(withinMs, DEADLINE_MS))
    inFlight += 1
    try {
      const result = await act(deadline.signal)
      health.answered()
      return result
    } catch (cause) {
      if (isDuplicate(cause)) throw cause
      if (!(cause instanceof MongoError || deadline.signal.aborted)) throw cause
      if (withinMs >= DEADLINE_MS) health.failed()
      throw storeUnavailable(cause)
    } finally {
      inFlight -= 1
      deadline.clear()
    }
  }
}

export const isDuplicate = (cause: unknown): boolean => cause instanceof MongoServerError && cause.code === 11_000

/**
 * Aborts when the time is over. Timers run late in a process that was paused, so the clock is looked at once more where the
 * driver asks, right before it sends, first tries and retries alike: what was late is not sent.
 */
export function createDeadline(withinMs: number): { signal: AbortSignal; clear(): void } {
  const end = performance.now() + withinMs
  const controller = new AbortController()
  const { signal } = controller
  const expire = () => controller.abort(new Error('no answer in time'))
  const timer = setTimeout(expire, Math.max(0, withinMs))
  signal.throwIfAborted = () => {
    if (performance.now() >= end) expire()
    if (signal.aborted) throw signal.reason
  }
  return { signal, clear: () => clearTimeout(timer) }
}
