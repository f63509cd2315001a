import { AsyncResource } from 'node:async_hooks'

/** Items that expire a fixed time after they were added. One timer serves all of them, since they expire in the order of the queue. */
export class ExpiryQueue<T> {
  readonly #ms: number
  readonly #onExpired: (item: T) => void
  readonly #deadlines = new Map<T, number>()
  #timer: NodeJS.Timeout | undefined

  constructor(ms: number, onExpired: (item: T) => void) {
    this.#ms = ms
    this.#onExpired = onExpired
  }

  /** Adds the item, or starts its time again. */
  add(item: T): void {
    this.#deadlines.delete(item)
    this.#deadlines.set(item, performance.now() + this.#ms)
    if (!this.#timer) this.#arm(this.#ms)
  }

  delete(item: T): void {
    this.#deadlines.delete(item)
  }

  #arm(ms: number): void {
    this.#timer = setTimeout(this.#expire, ms).unref()
  }

  /** Bound to its own async context: otherwise log lines about all items would have the id of the request that started the timer. */
  readonly #expire = AsyncResource.bind((): void => {
    this.#timer = undefined
    const now = performance.now()
    for (const [item, deadline] of this.#deadlines) {
      if (deadline > now) return this.#arm(Math.ceil(deadline - now))
      this.#deadlines.delete(item)
      this.#onExpired(item)
    }
  })
}
