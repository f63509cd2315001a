import { MongoBulkWriteError, MongoError, MongoServerError, type WriteError } from 'mongodb'
import type { Health } from '../../../kernel/health.ts'
import type { WriteOptions } from '../port.ts'
import { storeUnavailable } from '../unavailable.ts'

/**
 * Runs an operation of the driver under a deadline. Throws `unavailable` when MongoDB does not answer it in time, and when
 * it is sent after `mayWriteUntil`.
 */
export type OperationGuard = <T>(operation: (signal: AbortSignal) => Promise<T>, limits?: OperationLimits) => Promise<T>

export type OperationLimits = Pick<WriteOptions, 'withinMs' | 'mayWriteUntil'> & {
  /** How long an operation has already waited for others. */
  waitedMs?: number
}

/** Below the 3 s that the port promises. */
const DEADLINE_MS = 2_800
/** 20 on the pool's connections and 200 that wait for one; more could not be answered before the deadline. */
const MAX_IN_FLIGHT = 220
/** After an outage of this length operations fail at once; the connection monitor detects when MongoDB answers again. */
const FAIL_FAST_AFTER_MS = 3_000

export function createOperationGuard(health: Health, isReady: () => boolean): OperationGuard {
  let inFlight = 0
  return async (operation, { withinMs = DEADLINE_MS, mayWriteUntil = FOREVER, waitedMs = 0 } = {}) => {
    if (!isReady() || health.awayMs() > FAIL_FAST_AFTER_MS) throw storeUnavailable('MongoDB does not answer')
    if (inFlight >= MAX_IN_FLIGHT) throw storeUnavailable('too many operations are waiting')
    const deadline = createDeadlineSignal(Math.min(withinMs, DEADLINE_MS) - waitedMs, mayWriteUntil)
    inFlight += 1
    try {
      const result = await operation(deadline.signal)
      health.answered()
      return result
    } catch (cause) {
      if (isDuplicate(cause)) throw cause
      if (!(cause instanceof MongoError || isOfSocket(cause) || deadline.signal.aborted)) throw cause
      // The caller's own shorter deadline, or its refusal, says nothing about MongoDB.
      if (withinMs >= DEADLINE_MS && performance.now() < mayWriteUntil()) health.failed()
      throw storeUnavailable(cause)
    } finally {
      inFlight -= 1
      deadline.clear()
    }
  }
}

/** Whether this is an error of Node such as EPIPE, which the driver throws unchanged when MongoDB has just closed the connection. */
const isOfSocket = (cause: unknown): boolean =>
  cause instanceof Error && 'code' in cause && /^(E[A-Z]+|ERR_STREAM_\w+)$/.test(String(cause.code))

export const DUPLICATE = 11_000

export const isDuplicate = (cause: unknown): boolean =>
  cause instanceof MongoServerError && !(cause instanceof MongoBulkWriteError) && cause.code === DUPLICATE

/** The errors of the writes of one command, whose other writes have all been carried out. Throws the failure of the command itself. */
export function writeErrorsOf(cause: unknown): readonly WriteError[] {
  if (!(cause instanceof MongoBulkWriteError) || cause.result.getWriteConcernError()) throw cause
  const errors = Array.isArray(cause.writeErrors) ? cause.writeErrors : [cause.writeErrors]
  if (errors.length === 0) throw cause
  return errors
}

const FOREVER = () => Infinity

/**
 * A signal that aborts after `withinMs`. In a process that was paused, timers fire late, so the signal also compares the clock
 * in `throwIfAborted`, and reads `mayWriteUntil` there. The driver calls `throwIfAborted` right before each time that it sends a
 * command, so a late command is not sent. A process that is paused between this check and the sending sends it when it continues; then
 * the server has to refuse it (`insertBefore`).
 */
export function createDeadlineSignal(
  withinMs: number,
  mayWriteUntil = FOREVER,
): { signal: AbortSignal; clear(): void } {
  const end = performance.now() + withinMs
  const controller = new AbortController()
  const { signal } = controller
  const expire = () => controller.abort(new Error('no answer in time'))
  const refuse = () => controller.abort(new Error('this process may no longer write'))
  const timer = setTimeout(expire, Math.max(0, withinMs))
  signal.throwIfAborted = () => {
    if (performance.now() >= end) expire()
    if (performance.now() >= mayWriteUntil()) refuse()
    if (signal.aborted) throw signal.reason
  }
  return { signal, clear: () => clearTimeout(timer) }
}
