type Result<T> = IteratorResult<T, undefined>

/** The result of an iteration that is over. */
export const END = { done: true, value: undefined } as const

/** `pull` returns it when it has no value yet. It is called again after the next `wake`. */
export const LATER = Symbol('later')

/**
 * An iteration for one reader, whose values are taken one after the other. It is a class and not a generator: a generator's `return`
 * waits for the pending value, and generators cost more CPU for each value, and more memory while thousands of them wait.
 */
export abstract class PullIterator<T extends object> implements AsyncIterableIterator<T, undefined> {
  #isStopped = false
  #wake: (() => void) | undefined

  /** Returns the next value, at once if it is there; `undefined` is the end. */
  protected abstract pull(): T | undefined | typeof LATER | Promise<T | undefined>

  /** Frees what the iteration holds, and ends a promise of `pull` that waits. Called once: when the reader leaves, or at the end. */
  protected abstract stop(): void | Promise<void>

  /** Nothing more is pulled. */
  protected get isStopped(): boolean {
    return this.#isStopped
  }

  /** Calls `pull` again if it has returned `LATER`. The call comes one promise later, so that it finds everything that has arrived by then. */
  protected wake(): void {
    this.#wake?.()
  }

  next(): Promise<Result<T>> {
    try {
      const result = this.#step()
      return result instanceof Promise ? result : Promise.resolve(result)
    } catch (cause) {
      return Promise.reject(cause)
    }
  }

  async return(): Promise<Result<T>> {
    if (this.#isStopped) return END
    this.#isStopped = true
    this.#wake?.()
    await this.stop()
    return END
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  // Each event of a stream calls these functions. They are created once per iteration, so that an event creates none.

  readonly #step = (): Result<T> | Promise<Result<T>> => {
    if (this.#isStopped) return END
    const pulled = this.pull()
    if (pulled === LATER) return new Promise<void>(this.#setWake).then(this.#step)
    return pulled instanceof Promise ? pulled.then(this.#toResult) : this.#toResult(pulled)
  }

  readonly #setWake = (wake: () => void): void => {
    this.#wake = wake
  }

  readonly #toResult = (value: T | undefined): Result<T> | Promise<Result<T>> =>
    value ? { done: false, value } : this.return()
}
