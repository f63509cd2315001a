import type { SchemaThread } from './schema-thread.ts'

/** The share of its limit below which a task counts as one that did not get the CPU. */
const STARVED = 0.8
/** The longest time of a task, as a multiple of its limit. */
const MAX_STRETCH = 4

/** Watches the CPU time of a task in a thread, from now on: calls `onExpired` when the task has used up its limit. */
export class CpuLimit {
  readonly #thread: SchemaThread
  readonly #onExpired: () => void
  readonly #startedAt = performance.now()
  readonly #cpuAtStart: Promise<number | undefined>
  #limitMs = 0
  #timer: NodeJS.Timeout | undefined

  constructor(thread: SchemaThread, onExpired: () => void) {
    this.#thread = thread
    this.#onExpired = onExpired
    this.#cpuAtStart = thread.cpuMs().catch(() => undefined)
  }

  /** The time since the start, on the clock. */
  get elapsedMs(): number {
    return performance.now() - this.#startedAt
  }

  /** Replaces the limit. It counts from the start. */
  set(limitMs: number): void {
    this.#limitMs = limitMs
    this.#restart(limitMs - this.elapsedMs)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** The CPU time since the start. `undefined` when the thread has ended. */
  async usedMs(): Promise<number | undefined> {
    const hold = setTimeout(() => {}, MAX_STRETCH * 1_000) // A thread does not keep the process alive until it answers.
    const [start, now] = [await this.#cpuAtStart, await this.#thread.cpuMs().catch(() => undefined)]
    clearTimeout(hold)
    return start === undefined || now === undefined ? undefined : now - start
  }

  #restart(ms: number): void {
    clearTimeout(this.#timer)
    // Answers that came while the event loop was busy are read before the thread is ended.
    const expire = () => setImmediate(() => this.#timer === timer && void this.#checkTime(timer))
    const timer = setTimeout(expire, Math.max(0, ms))
    this.#timer = timer
  }

  /** Gives a task that has had less CPU time than its limit the rest of it, and ends every other. */
  async #checkTime(timer: NodeJS.Timeout): Promise<void> {
    const limitMs = this.#limitMs
    const usedMs = (await this.usedMs()) ?? limitMs
    if (this.#timer !== timer) return
    const isStarved = usedMs < STARVED * limitMs && this.elapsedMs < MAX_STRETCH * limitMs
    if (isStarved) this.#restart(limitMs - usedMs)
    else this.#onExpired()
  }
}
