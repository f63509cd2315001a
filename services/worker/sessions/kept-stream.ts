import { type Batched, eachOf } from '../../../shared/kernel/async/batch.ts'
import { END } from '../../../shared/kernel/async/pull-iterator.ts'
import { isTerminal, type RunEvent } from '../../../shared/kernel/events.ts'

export type KeptStreamSteps = {
  /** Called with each event first. */
  observe(event: RunEvent): void
  /** Called before an event is sent. The event waits for the promise, if there is one. */
  send(event: RunEvent): Promise<unknown> | undefined
  /** Called when a turn is complete. */
  onTurn(): void
  /**
   * Called before the next event is made, which waits for the promise, if there is one. It resolves with `false` when
   * another process continues the run.
   */
  stay?(): Promise<boolean> | undefined
  /** Returns the events to send in place of the last one. */
  end(last: RunEvent): Promise<RunEvent[]>
}

/**
 * The events of a run whose turns are stored, one by one: each has its number, and may wait to be sent. Nearly all of them are deltas, which pass without a further promise: those of a generator would cost a
 * tenth of the CPU of a stream (`Observed`).
 */
export class KeptStream implements AsyncIterableIterator<RunEvent, undefined> {
  readonly #events: AsyncIterator<Batched<RunEvent>>
  readonly #steps: KeptStreamSteps
  /** The remaining events of the batch that the run has yielded. */
  #made: RunEvent[] = []
  /** Events to yield before the run is asked for the next one. */
  #ready: RunEvent[] = []

  constructor(events: AsyncIterable<Batched<RunEvent>>, steps: KeptStreamSteps) {
    this.#events = events[Symbol.asyncIterator]()
    this.#steps = steps
  }

  next(): Promise<IteratorResult<RunEvent, undefined>> {
    const ready = this.#ready.shift()
    if (ready) return Promise.resolve({ done: false, value: ready })
    const stay = this.#steps.stay?.()
    return stay ? stay.then(this.#goOn) : this.#nextMade()
  }

  async return(): Promise<IteratorResult<RunEvent, undefined>> {
    await this.#events.return?.()
    return END
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  readonly #goOn = (isHere: boolean) => (isHere ? this.#nextMade() : this.return())

  async #nextMade(): Promise<IteratorResult<RunEvent, undefined>> {
    const made = this.#made.shift()
    return made ? this.#pass(made) : this.#events.next().then(this.#take)
  }

  readonly #take = (result: IteratorResult<Batched<RunEvent>>) => {
    if (result.done === true) return END
    const [event, ...others] = eachOf(result.value)
    this.#made = others
    return event ? this.#pass(event) : this.#nextMade()
  }

  #pass(event: RunEvent): IteratorResult<RunEvent, undefined> | Promise<IteratorResult<RunEvent, undefined>> {
    const { observe, send, onTurn } = this.#steps
    observe(event)
    const waiting = send(event)
    if (waiting || isTerminal(event)) return this.#passLater(event, waiting)
    if (event.type === 'turn_end') onTurn()
    return { done: false, value: event }
  }

  async #passLater(
    event: RunEvent,
    waiting: Promise<unknown> | undefined,
  ): Promise<IteratorResult<RunEvent, undefined>> {
    await waiting
    if (event.type === 'turn_end') this.#steps.onTurn()
    if (!isTerminal(event)) return { done: false, value: event }
    this.#ready = await this.#steps.end(event)
    return this.next()
  }
}
