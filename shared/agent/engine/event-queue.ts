/**
 * Merges the events of several tasks into one iteration, in order of arrival. Those that wait for the reader come as one value. Their number
 * is bounded by its use: progress is added only while there is room (`offer`), a sub-agent's many events wait for room (`send`), and a task
 * has only few events that are always added (`push`).
 */
export class EventQueue<T> {
  readonly #maxItems: number
  #items: T[] = []
  #isClosed = false
  #wakeReader: (() => void) | undefined
  #waitingSenders: (() => void)[] = []

  constructor(maxItems: number) {
    this.#maxItems = maxItems
  }

  push(item: T): void {
    if (this.#isClosed) return
    this.#items.push(item)
    this.#wakeReader?.()
  }

  /** Adds the item unless the reader is behind. */
  offer(item: T): void {
    if (this.#items.length < this.#maxItems) this.push(item)
  }

  /** Adds the item. Resolves when the reader has caught up, or the queue is closed. */
  async send(item: T): Promise<void> {
    this.push(item)
    if (this.#items.length < this.#maxItems || this.#isClosed) return
    await new Promise<void>((resolve) => {
      this.#waitingSenders.push(resolve)
    })
  }

  /** Ends the iteration after the queued items. Items added later are dropped. */
  close(): void {
    this.#isClosed = true
    this.#wakeReader?.()
    this.#releaseSenders()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly T[], void, undefined> {
    while (true) {
      const items = this.#items
      this.#items = []
      if (items.length > 0) yield items
      this.#releaseSenders()
      if (this.#items.length > 0) continue
      if (this.#isClosed) return
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve
      })
    }
  }

  #releaseSenders(): void {
    for (const resolve of this.#waitingSenders.splice(0)) resolve()
  }
}
