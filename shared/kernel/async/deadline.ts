import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Settles as `work` does, or rejects with `late()` after `withinMs`, which may be `Infinity`. A later result of `work` is ignored. After a time in which this process could
 * not run, timers come first: what has arrived at its sockets meanwhile is in time.
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

/** As `withDeadline`, for work that may take long while it makes progress: the time begins anew with each call of the function that `begin` gets. */
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

/** Carries out `work`, and all that it starts, for a caller who waits this long for the answer. Clocks differ, so callers in other processes say how long, not until when. */
export const answeringWithin = <T>(ms: number, work: () => T): T => callersUntil.run(performance.now() + ms, work)

/** For how much longer the caller waits for the answer of the running code; `Infinity` where nobody has said it. */
export const callersPatienceMs = (): number => (callersUntil.getStore() ?? Infinity) - performance.now()
