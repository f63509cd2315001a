import { ConnectionFailed } from '../errors.ts'

/** Waits, or rejects with the signal's reason when it is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

/** Resolves as the promise does, unless the signal is aborted before. */
export function unlessAborted<T>(value: T | Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    Promise.resolve(value)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', onAbort))
  })
}

/** Half to all of a pause that doubles with each failure, so that many clients do not come back at the same time. */
export const backoffMs = (failures: number, firstMs: number, mostMs: number): number =>
  Math.min(mostMs, firstMs * 2 ** (failures - 1)) * (0.5 + Math.random() / 2)

/** Aborts when the caller does, or by itself, which also ends the link. */
export function linkedAbort(caller: AbortSignal | undefined): AbortController {
  const abort = new AbortController()
  if (caller?.aborted) abort.abort(caller.reason)
  else caller?.addEventListener('abort', () => abort.abort(caller.reason), { once: true, signal: abort.signal })
  return abort
}

/** A signal that is aborted when the caller's is, or with `ConnectionFailed` when time is up. */
export class Deadline {
  readonly #abort = new AbortController()
  readonly #caller: AbortSignal | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(caller: AbortSignal | undefined) {
    this.#caller = caller
    if (caller?.aborted) this.#onAbort()
    else caller?.addEventListener('abort', this.#onAbort, { once: true })
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Gives it this much time from now on. */
  restart(ms: number, what: string): void {
    clearTimeout(this.#timer)
    const onTime = () => this.#abort.abort(new ConnectionFailed(`no ${what} within ${ms / 1000} s`))
    this.#timer = setTimeout(onTime, ms)
  }

  /** Nothing is waited for now. */
  pause(): void {
    clearTimeout(this.#timer)
  }

  release(): void {
    this.pause()
    this.#caller?.removeEventListener('abort', this.#onAbort)
  }

  readonly #onAbort = (): void => this.#abort.abort(this.#caller?.reason)
}
