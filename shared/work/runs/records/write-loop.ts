export type WriteLoopDeps = {
  /** Writes the waiting data, or a part of it. Resolves with `false` when the store did not accept it; never rejects. */
  write(): Promise<boolean>
  /** In how many milliseconds the next write is due; `undefined` when nothing waits. */
  dueInMs(): number | undefined
  /** The least time between two writes, in milliseconds: under load, waiting data is written together. */
  leastMs(): number
  /** Whether so much waits that the next write need not wait for more. */
  isFull?(): boolean
}

const RETRY_MS = 1_000
/** How many attempts `settled` waits for a store that does not answer. */
const SETTLE_TRIES = 3

/** Writes in the background, one write at a time: at once when it was idle, and a second after a write that the store did not accept. */
export class WriteLoop {
  readonly #deps: WriteLoopDeps
  #timer: NodeJS.Timeout | undefined
  #dueAt = Infinity
  #earliestAt = -Infinity
  /** The end of the pause after a write that the store did not accept. */
  #retryAt = -Infinity
  #writing: Promise<boolean> | undefined

  constructor(deps: WriteLoopDeps) {
    this.#deps = deps
  }

  /** Writes in `ms` milliseconds: later if the last write was too recent, sooner if an earlier write is due. */
  schedule(ms = 0): void {
    const now = performance.now()
    const dueAt = Math.max(now + ms, this.#deps.isFull?.() ? this.#retryAt : this.#earliestAt)
    if (dueAt >= this.#dueAt) return
    clearTimeout(this.#timer)
    this.#dueAt = dueAt
    this.#timer = setTimeout(() => void this.#flush(), dueAt - now).unref()
  }

  /** Resolves when all due data is written, or shortly after that time when the store does not answer. */
  async settled(): Promise<void> {
    for (let tries = 0; tries < SETTLE_TRIES && (this.#writing || this.#deps.dueInMs() === 0); ) {
      if (!(await this.#flush())) tries++
    }
    clearTimeout(this.#timer)
    this.#dueAt = Infinity
  }

  #flush(): Promise<boolean> {
    this.#dueAt = Infinity
    this.#writing ??= this.#write()
    return this.#writing
  }

  async #write(): Promise<boolean> {
    const begunAt = performance.now()
    const isWritten = await this.#deps.write()
    this.#writing = undefined
    this.#retryAt = isWritten ? begunAt : performance.now() + RETRY_MS
    this.#earliestAt = isWritten ? begunAt + this.#deps.leastMs() : this.#retryAt
    const dueInMs = this.#deps.dueInMs()
    if (dueInMs !== undefined) this.schedule(dueInMs)
    return isWritten
  }
}
