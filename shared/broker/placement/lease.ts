import type { Fence } from '../port.ts'

/** Not renewed for so long, a process stops before anybody may take its place (T_lease): others wait for 4 s. */
const FENCE_MS = 3_000

/** The process's right to act, which lasts for three seconds from each renewal, by the monotonic clock. */
export class Lease implements Fence {
  readonly #lastsMs: number
  readonly #waiting = new Set<() => void>()
  #renewedAt = -Infinity

  constructor(lastsMs = FENCE_MS) {
    this.#lastsMs = lastsMs
  }

  isHeld(): boolean {
    return performance.now() - this.#renewedAt < this.#lastsMs
  }

  /** The renewal was asked for at `askedAt`: Redis counts from some moment after it, and this process may have slept since. */
  renewed(askedAt: number): void {
    this.#renewedAt = askedAt
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
