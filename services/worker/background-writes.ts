import { retryUntil } from '../../shared/kernel/async/retry.ts'

const RETRY_MS = 1_000
/** The longest outage of the store that a write survives in memory. */
const MAX_TRIES = 600
/** Writes in memory; later ones are dropped while the store is away. */
const MAX_WAITING = 10_000

/** Writes that nobody waits for. Each is repeated until the store has answered. */
export class BackgroundWrites {
  readonly #onLost: (why: string, what: object, cause?: unknown) => void
  readonly #waiting = new Set<Promise<void>>()

  /** `onLost` is called for a write that was given up, with the description that `add` got. */
  constructor(onLost: (why: string, what: object, cause?: unknown) => void) {
    this.#onLost = onLost
  }

  add(what: object, write: () => Promise<void>): void {
    if (this.#waiting.size >= MAX_WAITING) return this.#onLost('too many wait for the store', what)
    const writing = this.#repeat(what, write).finally(() => this.#waiting.delete(writing))
    this.#waiting.add(writing)
  }

  /** Resolves when everything that was added is written, or given up. */
  async settled(): Promise<void> {
    await Promise.all(this.#waiting)
  }

  async #repeat(what: object, write: () => Promise<void>): Promise<void> {
    let tries = 0
    await retryUntil(write, { pauses: RETRY_MS, mayPass: () => ++tries < MAX_TRIES, ref: false }).catch(
      (cause: unknown) => this.#onLost('the store did not answer', what, cause),
    )
  }
}
