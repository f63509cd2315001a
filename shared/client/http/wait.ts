import { ConnectionFailed } from '../errors.ts'

/** Calls back when the signal is aborted, at once when it is already. Returns what ends that. */
function onAbort(signal: AbortSignal | undefined, callback: (reason: unknown) => void): () => void {
  const listener = () => callback(signal?.reason)
  if (signal?.aborted) listener()
  signal?.addEventListener('abort', listener, { once: true })
  return () => signal?.removeEventListener('abort', listener)
}

/** Resolves as the promise does, unless the signal is aborted before. */
export const unlessAborted = <T>(value: T | Promise<T>, signal: AbortSignal | undefined): Promise<T> =>
  new Promise((resolve, reject) => {
    const stop = onAbort(signal, reject)
    Promise.resolve(value).then(resolve, reject).finally(stop)
  })

/** Waits, or rejects with the signal's reason when it is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout>
  const passed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  return unlessAborted(passed, signal).finally(() => clearTimeout(timer))
}

/** Half to all of a pause that doubles with each failure, so that many clients do not come back at the same time. */
export const backoffMs = (failures: number, firstMs: number): number =>
  Math.min(MOST_PAUSE_MS, firstMs * 2 ** (failures - 1)) * (0.5 + Math.random() / 2)

const MOST_PAUSE_MS = 5_000

/** Aborts when the caller does, or by itself, which also ends the link. */
export function linkedAbort(caller: AbortSignal | undefined): AbortController {
  const abort = new AbortController()
  abort.signal.addEventListener(
    'abort',
    onAbort(caller, (reason) => abort.abort(reason)),
  )
  return abort
}

/** A signal that is aborted when the caller's is, or with `ConnectionFailed` when time is up. */
export class Deadline {
  readonly #abort: AbortController
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(caller: AbortSignal | undefined) {
    this.#abort = linkedAbort(caller)
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Gives it this much time from now on. */
  restart(ms: number, what: string): void {
    this.pause()
    const onTime = () => this.#abort.abort(new ConnectionFailed(`no ${what} within ${ms / 1000} s`))
    this.#timer = setTimeout(onTime, ms)
  }

  /** Nothing is waited for now. */
  pause(): void {
    clearTimeout(this.#timer)
  }

  /** Ends what still uses the signal, too. */
  release(): void {
    this.pause()
    this.#abort.abort()
  }

  /** Throws for a connection that broke: the caller, the time, or something between us and the server has broken it. */
  readonly fail = (cause: unknown): never => {
    throw this.signal.aborted ? this.signal.reason : new ConnectionFailed('the connection failed', { cause })
  }
}
