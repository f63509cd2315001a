import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Settles as `work` does, or rejects with `late()` after `withinMs`, which may be `Infinity`. A later result of `work` is ignored. After a pause of
 * the process timers fire before sockets are read: results that arrived meanwhile still count.
 */
export async function withDeadline<T>(work: Promise<T>, withinMs: number, late: () => Error): Promise<T> {
  if (withinMs === Infinity) return work
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => setImmediate(() => reject(late())), Math.max(0, withinMs))
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Settles as `work` does, or resolves with `undefined` after `ms`. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => resolve(undefined), ms)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Like `withDeadline`, for work that may take long while it makes progress: the time starts again with each call of the
 * function that `begin` gets.
 */
export async function withProgress<T>(
  begin: (onProgress: () => void) => Promise<T>,
  withinMs: number,
  late: () => Error,
): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => setImmediate(() => reject(late())), withinMs)
  let isOver = false
  const onProgress = () => {
    if (!isOver) timer.refresh()
  }
  try {
    return await Promise.race([begin(onProgress), promise])
  } finally {
    isOver = true
    clearTimeout(timer)
  }
}

const callersUntil = new AsyncLocalStorage<number>()

/**
 * Runs `work`, and all that it starts, for a caller that waits `ms` for the answer. Clocks differ, so callers in other
 * processes send a duration, not a time.
 */
export const answeringWithin = <T>(ms: number, work: () => T): T => callersUntil.run(performance.now() + ms, work)

/** How much longer the caller of the running code waits for its answer; `Infinity` if that is unknown. */
export const callersPatienceMs = (): number => (callersUntil.getStore() ?? Infinity) - performance.now()
