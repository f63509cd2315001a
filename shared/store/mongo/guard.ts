import { MongoError, MongoServerError } from 'mongodb'
import type { Health } from '../../health.ts'
import { storeUnavailable } from '../unavailable.ts'

/** Runs an operation of the driver under a deadline. Throws `unavailable` when MongoDB does not answer it in time. */
export type OperationGuard = <T>(operation: (signal: AbortSignal) => Promise<T>, withinMs?: number) => Promise<T>

/** Below the 3 s that the port promises. */
const DEADLINE_MS = 2_800
/** 20 on the pool's connections and 200 that wait for one; more could not be answered before the deadline. */
const MAX_IN_FLIGHT = 220
/** After an outage of this length operations fail at once; the connection monitor finds out when MongoDB answers again. */
const FAIL_FAST_AFTER_MS = 3_000

export function createOperationGuard(health: Health, isReady: () => boolean): OperationGuard {
  let inFlight = 0
  return async (operation, withinMs = DEADLINE_MS) => {
    if (!isReady() || health.awayMs() > FAIL_FAST_AFTER_MS) throw storeUnavailable('MongoDB does not answer')
    if (inFlight >= MAX_IN_FLIGHT) throw storeUnavailable('too many operations are waiting')
    const deadline = createDeadlineSignal(Math.min(withinMs, DEADLINE_MS))
    inFlight += 1
    try {
      const result = await operation(deadline.signal)
      health.answered()
      return result
    } catch (cause) {
      if (isDuplicate(cause)) throw cause
      if (!(cause instanceof MongoError || deadline.signal.aborted)) throw cause
      // A caller's own shorter deadline says nothing about MongoDB.
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
 * A signal that aborts after `withinMs`. In a process that was paused, timers fire late, so the signal also compares the clock
 * in `throwIfAborted`, which the driver calls right before it sends a command, at first and at a retry. A command that is late
 * is therefore not sent.
 */
export function createDeadlineSignal(withinMs: number): { signal: AbortSignal; clear(): void } {
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
