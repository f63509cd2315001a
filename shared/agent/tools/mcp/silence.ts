/** Ends a call whose server is silent for too long. The time in which a person is asked does not count. */
export class Silence {
  readonly #maxMs: number
  readonly #abort = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #pauses = 0

  constructor(maxMs: number) {
    this.#maxMs = maxMs
    this.heard()
  }

  /** Aborted when it has lasted for too long. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** The server has said something: the time begins anew. */
  heard(): void {
    this.end()
    if (this.#pauses === 0) this.#timer = setTimeout(() => this.#abort.abort('silence'), this.#maxMs).unref()
  }

  async pausedFor<T>(work: () => Promise<T>): Promise<T> {
    this.#pauses += 1
    this.end()
    try {
      return await work()
    } finally {
      this.#pauses -= 1
      this.heard()
    }
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}
