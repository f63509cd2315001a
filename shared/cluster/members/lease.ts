import type { Fence } from './fence.ts'
import { elapsedMs, type Moment, now } from './moment.ts'

/** Shorter than the 4 s after which other processes may evict this one: it stops acting before they do. */
const FENCE_MS = 3_000

/** This process's right to act. It lasts three seconds from each renewal, by the monotonic and by the wall clock. */
export class Lease implements Fence {
  readonly #durationMs: number
  readonly #clock: () => Moment
  readonly #waiting = new Set<() => void>()
  #renewedAt: Moment | undefined

  constructor(durationMs = FENCE_MS, clock: () => Moment = now) {
    this.#durationMs = durationMs
    this.#clock = clock
  }

  isHeld(): boolean {
    return this.heldUntil() > -Infinity
  }

  heldUntil(): number {
    if (!this.#renewedAt || elapsedMs(this.#renewedAt, this.#clock()) >= this.#durationMs) return -Infinity
    return this.#renewedAt.monotonic + this.#durationMs
  }

  /**
   * Extends the lease. `requestedAt` is when the renewal was sent, not when its answer was read: Redis counts from a moment in
   * between, and this process may have been stopped before it read the answer.
   */
  renewed(requestedAt: Moment): void {
    this.#renewedAt = requestedAt
    if (!this.isHeld()) return
    for (const wake of this.#waiting) wake()
  }

  async whenHeld(signal: AbortSignal): Promise<void> {
    if (this.isHeld() || signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const wake = () => resolve()
    this.#waiting.add(wake)
    signal.addEventListener('abort', wake)
    await promise
    signal.removeEventListener('abort', wake)
    this.#waiting.delete(wake)
  }
}
