import type { SchemaThread } from './schema-thread.ts'

/** A task that has used less than this share of its limit is assumed to have waited for the CPU. */
const STARVED = 0.8
/** The longest time of a task, as a multiple of its limit. */
const MAX_STRETCH = 10

/**
 * Most checks of a value have ended after this time. Before that the CPU time is not read, because that needs a message
 * to the thread; the elapsed time counts as used.
 */
const UNREAD_MS = 10
/** For a limit below this the CPU time is read from the start. */
const SHORT_MS = 40

type Thread = Pick<SchemaThread, 'cpuMs'>

/** Watches the CPU time of a task in a thread, from now on: calls `onExpired` when the task has used up its limit. */
export class CpuLimit {
  readonly #thread: Thread
  readonly #onExpired: () => void
  readonly #startedAt = performance.now()
  /** `undefined` until the CPU time is read first. */
  #cpuAtStart: Promise<number | undefined> | undefined
  #limitMs = 0
  #timer: NodeJS.Timeout | undefined

  /** `isLong`: the task is not likely to end at once. */
  constructor(thread: Thread, { isLong, onExpired }: { isLong: boolean; onExpired: () => void }) {
    this.#thread = thread
    this.#onExpired = onExpired
    if (isLong) this.#read()
  }

  /** The time since the start, on the clock. */
  get elapsedMs(): number {
    return performance.now() - this.#startedAt
  }

  /** Replaces the limit. It counts from the start. */
  set(limitMs: number): void {
    this.#limitMs = limitMs
    if (limitMs < SHORT_MS) this.#read()
    if (this.#cpuAtStart) this.#restart(limitMs - this.elapsedMs)
    else this.#after(UNREAD_MS, () => this.#begin())
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** The CPU time since the start. `undefined` when the thread has ended, and for a task that was too short to be read. */
  async usedMs(): Promise<number | undefined> {
    const hold = setTimeout(() => {}, MAX_STRETCH * 1_000) // The timer keeps the process alive until the thread answers; a thread itself does not.
    const start = await this.#cpuAtStart
    const now = start === undefined ? undefined : await this.#cpuMs()
    clearTimeout(hold)
    return start === undefined || now === undefined ? undefined : now - start
  }

  #begin(): void {
    this.#read()
    this.#restart(this.#limitMs - this.elapsedMs)
  }

  #read(): void {
    const unreadMs = Math.min(this.elapsedMs, UNREAD_MS)
    this.#cpuAtStart ??= this.#cpuMs().then((ms) => (ms === undefined ? undefined : ms - unreadMs))
  }

  #cpuMs(): Promise<number | undefined> {
    return this.#thread.cpuMs().catch(() => undefined)
  }

  #restart(ms: number): void {
    this.#after(ms, (timer) => void this.#checkTime(timer))
  }

  /** Acts after `ms`, but first reads answers that arrived while the event loop was busy. */
  #after(ms: number, act: (timer: NodeJS.Timeout) => void): void {
    clearTimeout(this.#timer)
    const expire = () => setImmediate(() => this.#timer === timer && act(timer))
    const timer = setTimeout(expire, Math.max(0, ms))
    this.#timer = timer
  }

  /** Gives a task that has used less CPU time than its limit the rest of it, and ends other tasks. */
  async #checkTime(timer: NodeJS.Timeout): Promise<void> {
    const limitMs = this.#limitMs
    const usedMs = (await this.usedMs()) ?? limitMs
    if (this.#timer !== timer) return
    const isStarved = usedMs < STARVED * limitMs && this.elapsedMs < MAX_STRETCH * limitMs
    if (isStarved) this.#restart(limitMs - usedMs)
    else this.#onExpired()
  }
}
