import { nextTick } from 'node:process'

/** The work that one turn of the event loop does. A piece of work may exceed it; the next one then waits. */
const TURN_MS = 8

/**
 * Shares the event loop among tasks, such as recording events, rendering pieces of large events, and searches: the
 * pieces of work that are done in one turn take about 8 ms together, and the others wait for the next turns in order of arrival, while
 * connections are served in between.
 */
export class LoopBudget {
  readonly #turnMs: number
  readonly #waiting: (() => void)[] = []
  #turnStartedAt: number | undefined

  constructor(turnMs = TURN_MS) {
    this.#turnMs = turnMs
  }

  /** Returns `undefined` when a piece of work may be done now, else a promise that resolves when it may. */
  enter(): Promise<void> | undefined {
    this.#turnStartedAt ??= this.#startTurn()
    if (this.#waiting.length === 0 && this.#hasTime(this.#turnStartedAt)) return undefined
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push(resolve)
    return promise
  }

  #startTurn(): number {
    setImmediate(this.#endTurn)
    return performance.now()
  }

  #hasTime(startedAt: number): boolean {
    return performance.now() - startedAt < this.#turnMs
  }

  readonly #endTurn = (): void => {
    this.#turnStartedAt = undefined
    if (this.#waiting.length > 0) void this.#nextTurn() // A turn in which nothing waits makes no promise.
  }

  async #nextTurn(): Promise<void> {
    const startedAt = this.#startTurn()
    this.#turnStartedAt = startedAt
    for (let wake = this.#waiting.shift(); wake; wake = this.#hasTime(startedAt) ? this.#waiting.shift() : undefined) {
      wake()
      await allPromises() // Lets the woken piece of work run to its end, however many promises it awaits.
    }
  }
}

/** Resolves when all promises have been handled that can be handled without another turn of the event loop. */
const allPromises = (): Promise<void> => new Promise((resolve) => nextTick(resolve))

/** The event loop of this process. */
export const eventLoop = new LoopBudget()
