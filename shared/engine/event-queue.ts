/**
 * Brings what several tasks emit into one iteration, in order of arrival. Bounded by its use: what may be left out (progress)
 * is offered only while there is room, what must arrive is a few events per task.
 */
export class EventQueue<T> {
  readonly #maxOptional: number
  #items: T[] = []
  #isClosed = false
  #wake: (() => void) | undefined

  constructor(maxOptional: number) {
    this.#maxOptional = maxOptional
  }

  push(item: T): void {
    if (this.#isClosed) return
    this.#items.push(item)
    this.#wake?.()
  }

  /** Adds the item unless the reader is behind. */
  offer(item: T): void {
    if (this.#items.length < this.#maxOptional) this.push(item)
  }

  /** Ends the iteration once what is queued has been read. */
  close(): void {
    this.#isClosed = true
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    while (true) {
      const items = this.#items
      this.#items = []
      yield* items
      if (this.#items.length > 0) continue
      if (this.#isClosed) return
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}
