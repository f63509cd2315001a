import { isTerminal, type RunEvent } from '../../../shared/kernel/events.ts'

export type KeptStreamSteps = {
  /** Called with each event first. */
  observe(event: RunEvent): void
  /** The event is about to be sent. A promise resolves when it may be. */
  send(event: RunEvent): Promise<unknown> | undefined
  /** A turn is complete. */
  onTurn(): void
  /** The next event is about to be made. A promise resolves when it may be, and with `false` when it is made elsewhere. */
  stay?(): Promise<boolean> | undefined
  /** Returns what is sent for the last event. */
  end(last: RunEvent): Promise<RunEvent[]>
}

/**
 * The events of a run whose turns are stored. Nearly all of them are deltas, which pass without a further promise: those of a generator would cost a
 * tenth of the CPU of a stream (`Observed`).
 */
export class KeptStream implements AsyncIterableIterator<RunEvent, undefined> {
  readonly #events: AsyncIterator<RunEvent>
  readonly #steps: KeptStreamSteps
  /** Events to pass on before the next one is asked of the run. */
  #ready: RunEvent[] = []

  constructor(events: AsyncIterable<RunEvent>, steps: KeptStreamSteps) {
    this.#events = events[Symbol.asyncIterator]()
    this.#steps = steps
  }

  next(): Promise<IteratorResult<RunEvent, undefined>> {
    const ready = this.#ready.shift()
    if (ready) return Promise.resolve({ done: false, value: ready })
    const stay = this.#steps.stay?.()
    return stay ? stay.then(this.#goOn) : this.#events.next().then(this.#pass)
  }

  async return(): Promise<IteratorResult<RunEvent, undefined>> {
    await this.#events.return?.()
    return END
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  readonly #goOn = (isHere: boolean) => (isHere ? this.#events.next().then(this.#pass) : this.return())

  readonly #pass = (
    result: IteratorResult<RunEvent>,
  ): IteratorResult<RunEvent, undefined> | Promise<IteratorResult<RunEvent, undefined>> => {
    if (result.done === true) return END
    const event = result.value
    const { observe, send, onTurn } = this.#steps
    observe(event)
    const waiting = send(event)
    if (waiting || isTerminal(event)) return this.#passLater(event, waiting)
    if (event.type === 'turn_end') onTurn()
    return result
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

const END = { done: true, value: undefined } as const
