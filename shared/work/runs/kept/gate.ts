/** Runs at most `max` tasks at a time, in the order of the calls. */
export class Gate {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(max: number) {
    this.#free = max
  }

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#free -= 1
    try {
      return await task()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free += 1
    }
  }

  /** Runs a task for each item, a few at a time, so that one caller does not fill the queue. Throws the first failure after all have ended. */
  async each<T, R>(items: Iterable<T>, task: (item: T) => Promise<R>): Promise<R[]> {
    const pending = Array.from(items).entries()
    const results: R[] = []
    const work = async () => {
      for (const [i, item] of pending) results[i] = await this.run(() => task(item))
    }
    const ended = await Promise.allSettled(Array.from({ length: EACH }, work))
    for (const end of ended) if (end.status === 'rejected') throw end.reason
    return results
  }
}

const EACH = 4
