import { START } from './event-text.ts'
import type { EventPosition, LoggedEvent } from './port.ts'

/** The newest events of one tenant, without a gap between them. */
export class RecentEvents {
  readonly #max: number
  #events: LoggedEvent[] = []
  #end: EventPosition

  constructor(max: number, end: EventPosition = START) {
    this.#max = max
    this.#end = end
  }

  get end(): EventPosition {
    return this.#end
  }

  /** Whether an event at this position comes next. */
  isNext({ generation, n }: EventPosition): boolean {
    return n === 1 ? generation > this.#end.generation : generation === this.#end.generation && n === this.#end.n + 1
  }

  add(event: LoggedEvent): void {
    if (event.position.generation !== this.#end.generation) this.#events = []
    this.#events.push(event)
    this.#end = event.position
    if (this.#events.length >= 2 * this.#max) this.#events = this.#events.slice(-this.#max)
  }

  /** Continues at another position; the events before it are not known here. */
  skipTo(end: EventPosition): void {
    this.#events = []
    this.#end = end
  }

  /** The events after a position; `undefined` when the next one is not among these. */
  after({ generation, n }: EventPosition): readonly LoggedEvent[] | undefined {
    if (generation === this.#end.generation && n === this.#end.n) return []
    const first = this.#events[0]?.position
    if (!first) return undefined
    const isFromStart = generation === START.generation && n === START.n
    const index = generation === first.generation || isFromStart ? n + 1 - first.n : -1
    return index >= 0 && n < this.#end.n ? this.#events.slice(index) : undefined
  }
}
