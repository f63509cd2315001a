import type { NumberedEvent } from '../../../shared/agent/sessions/open-runs.ts'
import { isTerminal, type RunEvent } from '../../../shared/kernel/events.ts'
import { isDelta } from '../../../shared/work/runs/records/captured-events.ts'

/** Limits of a run's events, and of their texts, that stay in memory for a log entry with all events. */
const MAX_EVENTS = 4_096
const MAX_CHARS = 2 * 1024 * 1024

/**
 * The events of a run's complete turns, without deltas, for its replay after the death of this worker. The run's own
 * events share their texts with the conversation.
 */
export class KeptEvents {
  /** The events of complete turns. The first `#taken` of them are in the log. */
  #events: NumberedEvent[]
  #taken: number
  #chars: number
  /** The events of the current turn. */
  #next: NumberedEvent[] = []
  #from: number
  /** The number of complete turns. */
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
    const isAll = isBase || this.#taken < 0 // Negative: events were forgotten before they were in the log.
    const events = isAll ? [...this.#events] : this.#events.slice(this.#taken)
    this.#taken = this.#events.length
    return { events, ...(isAll && { events_from: this.#from }) }
  }

  /** Forgets the oldest events. */
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

/** The characters of an event's texts. A sub-agent's event has its texts in the same fields. */
function charsOf(event: RunEvent): number {
  let sum = 0
  for (const field in event) {
    const value: unknown = event[field as keyof RunEvent]
    if (typeof value === 'string') sum += value.length
  }
  return sum
}
