import type { NumberedEvent } from '../../../shared/agent/sessions/open-runs.ts'
import { isTerminal, type RunEvent } from '../../../shared/kernel/events.ts'
import { isDelta } from '../../../shared/work/runs/records/captured-events.ts'

/** Events of one run that stay in memory, and their texts, for an entry that has all of them. */
const MAX_EVENTS = 4_096
const MAX_CHARS = 2 * 1024 * 1024

/** The events of a run's complete turns, without deltas, for its replay after the death of this worker. Those of the run itself share their texts with the conversation. */
export class KeptEvents {
  /** Those of complete turns. The first of them, `#taken` in number, are in the log. */
  #events: NumberedEvent[]
  #taken: number
  #chars: number
  /** Those of the turn under way. */
  #next: NumberedEvent[] = []
  #from: number
  /** How many turns are complete. */
  turns: number

  constructor(earlier?: { events: readonly NumberedEvent[]; eventsFrom: number; turns: number }) {
    this.#events = [...(earlier?.events ?? [])]
    this.#taken = this.#events.length
    this.#chars = this.#events.reduce((sum, [, event]) => sum + charsOf(event), 0)
    this.#from = earlier?.eventsFrom ?? 1
    this.turns = earlier?.turns ?? 0
  }

  add(seq: number, event: RunEvent): void {
    if (isDelta(event)) return
    this.#next.push([seq, event])
    if (event.type === 'turn_end') this.turns++
    if (event.type !== 'turn_end' && !isTerminal(event)) return
    this.#events.push(...this.#next)
    this.#chars += this.#next.reduce((sum, [, each]) => sum + charsOf(each), 0)
    this.#next = []
  }

  /** The events since the last call, or all of them. */
  take(isBase: boolean): { events: readonly NumberedEvent[]; events_from?: number } {
    this.#trim()
    const isAll = isBase || this.#taken < 0 // Events that the log lacks were forgotten.
    const events = isAll ? [...this.#events] : this.#events.slice(this.#taken)
    this.#taken = this.#events.length
    return { events, ...(isAll && { events_from: this.#from }) }
  }

  /** Forgets the oldest. */
  #trim(): void {
    let count = 0
    while (this.#events.length - count > MAX_EVENTS || this.#chars > MAX_CHARS) {
      const oldest = this.#events[count++]
      if (!oldest) break
      this.#chars -= charsOf(oldest[1])
      this.#from = oldest[0] + 1
    }
    this.#events.splice(0, count)
    this.#taken -= count
  }
}

/** The characters of an event's texts. Those of a sub-agent's event are fields of it, too. */
function charsOf(event: RunEvent): number {
  let sum = 0
  for (const field in event) {
    const value: unknown = event[field as keyof RunEvent]
    if (typeof value === 'string') sum += value.length
  }
  return sum
}
