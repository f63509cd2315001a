/**
 * Brings what several tasks emit into one iteration, in order of arrival. Bounded by its use: what may be left out (progress)
 * is offered only while there is room, who brings much (a sub-agent) waits for room, what else must arrive is a few events
 * per task.
 */
export class EventQueue<T> {
  readonly #maxItems: number
  #items: T[] = []
  #isClosed = false
  #wake: (() => void) | undefined
  #waiting: (() => void)[] = []

  constructor(maxItems: number) {
    this.#maxItems = maxItems
  }

  push(item: T): void {
    if (this.#isClosed) return
    this.#items.push(item)
    this.#wake?.()
  }

  /** Adds the item unless the reader is behind. */
  offer(item: T): void {
    if (this.#items.length < this.#maxItems) this.push(item)
  }

  /** Adds the item and resolves when the reader has caught up, or has left. */
  async send(item: T): Promise<void> {
    this.push(item)
    if (this.#items.length < this.#maxItems || this.#isClosed) return
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve)
    })
  }

  /** Ends the iteration once what is queued has been read. */
  close(): void {
    this.#isClosed = true
    this.#wake?.()
    this.#letGo()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    while (true) {
      const items = this.#items
      this.#items = []
      yield* items
      this.#letGo()
      if (this.#items.length > 0) continue
      if (this.#isClosed) return
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
  #letGo(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
