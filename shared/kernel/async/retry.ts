import { setTimeout as sleep } from 'node:timers/promises'

export type Retries = {
  /** Milliseconds between two attempts: always the same, or doubled from the first to the last. */
  pauses: number | readonly [first: number, last: number]
  /** Whether to try again after this failure; by default after each one. */
  mayPass?(cause: unknown): boolean
  /** The time of `performance.now()` after which a failure is final; none by default. */
  until?: number
  /** Ends the retries with its reason. */
  signal?: AbortSignal
  /** `false`: a pause does not keep the process alive. */
  ref?: boolean
}

/** Repeats an attempt until it works. Throws the failure that is final. */
export async function retryUntil<T>(attempt: () => Promise<T>, retries: Retries): Promise<T> {
  const { pauses, mayPass = () => true, until = Infinity, signal, ref = true } = retries
  const [first, last] = typeof pauses === 'number' ? [pauses, pauses] : pauses
  for (let pauseMs = first; ; pauseMs = Math.min(2 * pauseMs, last)) {
    signal?.throwIfAborted()
    try {
      return await attempt()
    } catch (cause) {
      if (!mayPass(cause) || performance.now() >= until) throw cause
    }
    await sleep(pauseMs, undefined, { ref, ...(signal && { signal }) })
  }
}
