import type { Fence } from '../port.ts'

/** Shorter than the 4 s after which other processes may evict this one: it stops acting before they do. */
const FENCE_MS = 3_000

/** This process's right to act. It lasts three seconds from each renewal, by the monotonic clock. */
export class Lease implements Fence {
  readonly #durationMs: number
  readonly #waiting = new Set<() => void>()
  #renewedAt = -Infinity

  constructor(durationMs = FENCE_MS) {
    this.#durationMs = durationMs
  }

  isHeld(): boolean {
    return performance.now() - this.#renewedAt < this.#durationMs
  }

  /**
   * Extends the lease. `requestedAt` is when the renewal was sent, not when its answer was read: Redis counts from a moment in
   * between, and this process may have been stopped before it read the answer.
   */
  renewed(requestedAt: number): void {
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
