import { ConnectionFailed } from '../errors.ts'

/** Calls `callback` when the signal is aborted, or at once if it already is, unless `until` is aborted first. */
function onAbort(signal: AbortSignal | undefined, callback: (reason: unknown) => void, until: AbortSignal): void {
  if (signal?.aborted) callback(signal.reason)
  signal?.addEventListener('abort', () => callback(signal.reason), { signal: until })
}

/** A controller that is aborted with the caller's signal. Aborting it also removes the link. */
export function linkedAbort(caller: AbortSignal | undefined): AbortController {
  const abort = new AbortController()
  onAbort(caller, (reason) => abort.abort(reason), abort.signal)
  return abort
}

/** Resolves as the promise does, unless `abort` is aborted first. After `ms` it is aborted with `ConnectionFailed`. */
export function within<T>(ms: number, promise: Promise<T>, abort: AbortController): Promise<T> {
  const onTime = () => abort.abort(new ConnectionFailed(`nothing came for ${ms / 1000} s`))
  const timer = setTimeout(onTime, ms)
  const settled = new AbortController()
  return new Promise<T>((resolve, reject) => {
    onAbort(abort.signal, reject, settled.signal)
    promise.then(resolve, reject)
  }).finally(() => {
    clearTimeout(timer)
    settled.abort()
  })
}

/** Waits, or rejects with the signal's reason when it is aborted. */
export const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  within(ms, new Promise<never>(() => {}), linkedAbort(signal)).catch(() => signal?.throwIfAborted())

/** A random pause, whose upper limit doubles with each failure, so that many clients do not return at the same time. */
export const backoffMs = (failures: number): number =>
  Math.min(MOST_PAUSE_MS, PAUSE_MS * 2 ** failures) * (0.5 + Math.random() / 2)

/** Half of the first pause. */
const PAUSE_MS = 100
const MOST_PAUSE_MS = 5_000
