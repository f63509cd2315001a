/** Items that one side adds and the other takes, in order. Whoever uses it bounds what waits in it. */
export class Inbox<Item> {
  readonly #items: Item[] = []
  #end: { cause?: unknown } | undefined
  #wake: (() => void) | undefined

  add(item: Item): void {
    this.#items.push(item)
    this.#wake?.()
  }

  /** Nothing follows; with a cause, its reader gets that thrown behind the last item. */
  end(cause?: unknown): void {
    this.#end ??= cause === undefined ? {} : { cause }
    this.#wake?.()
  }

  async *take(): AsyncGenerator<Item, void, undefined> {
    for (;;) {
      const item = this.#items.shift()
      if (item !== undefined) yield item
      else if (this.#end && 'cause' in this.#end) throw this.#end.cause
      else if (this.#end) return
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }
}
