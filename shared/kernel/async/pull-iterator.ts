const END: IteratorReturnResult<undefined> = { done: true, value: undefined }

/**
 * An iteration for one reader, whose values are taken one after the other. It is a class and not a generator: a generator's `return`
 * waits for the pending value, and generators cost more CPU for each value, and more memory while thousands of them wait.
 */
export abstract class PullIterator<T extends object> implements AsyncIterableIterator<T, undefined> {
  #isStopped = false

  /** Returns the next value, at once if it is there; `undefined` is the end. */
  protected abstract pull(): T | undefined | Promise<T | undefined>

  /** Frees what the iteration holds, and ends a `pull` that waits. Called once: when the reader leaves, or at the end. */
  protected abstract stop(): void | Promise<void>

  /** Nothing more is pulled. */
  protected get isStopped(): boolean {
    return this.#isStopped
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#isStopped) return Promise.resolve(END)
    try {
      const pulled = this.pull()
      if (pulled instanceof Promise) return pulled.then((value) => (value ? { done: false, value } : this.return()))
      return pulled ? Promise.resolve({ done: false, value: pulled }) : this.return()
    } catch (cause) {
      return Promise.reject(cause)
    }
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    if (this.#isStopped) return END
    this.#isStopped = true
    await this.stop()
    return END
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
