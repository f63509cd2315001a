import { idOf, positionOf } from '../../../shared/tenancy/events/event-text.ts'
import type { EventPosition } from '../../../shared/tenancy/events/port.ts'

/** Receives the time at which an event was written, in milliseconds since 1970. */
export type OnEvent = (at: number) => void

const OPENING = ': ok\n'
const FRAME = /^id: (\d+-\d+)\nevent: [\w.]+\ndata: \{.*"at":"([^"]+)"\}$/
/** The comment lines before a frame. */
const COMMENTS = /^(?::.*\n)+/

/** Reads one stream of `GET /events` and checks that each event comes once and in order, from the one after a position on. */
export class EventReader {
  readonly #onEvent: OnEvent
  #at: EventPosition
  #rest = ''
  #isOpen = false
  #faults = 0

  constructor(after: EventPosition, onEvent: OnEvent) {
    this.#at = after
    this.#onEvent = onEvent
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Frames that were not the next event. */
  get faults(): number {
    return this.#faults
  }

  /** Whether the last frame was the event at this position. */
  isAt(id: string): boolean {
    return idOf(this.#at) === id
  }

  read(text: string): void {
    let rest = this.#rest + text
    if (!this.#isOpen && rest.startsWith(OPENING)) {
      this.#isOpen = true
      rest = rest.slice(OPENING.length)
    }
    const frames = rest.split('\n\n')
    this.#rest = frames.pop() ?? ''
    for (const frame of frames) this.#readFrame(frame.replace(COMMENTS, ''))
  }

  #readFrame(frame: string): void {
    const [, id = '', at = ''] = FRAME.exec(frame) ?? []
    const position = positionOf(id)
    const { generation, n } = this.#at
    if (position?.generation !== generation || position.n !== n + 1) this.#faults++
    if (!position) return
    this.#at = position
    this.#onEvent(millisOf(at))
  }
}

let lastText = ''
let lastMs = 0

/** Parses a time. All readers get the same one at the same time. */
function millisOf(text: string): number {
  if (text !== lastText) [lastText, lastMs] = [text, Date.parse(text)]
  return lastMs
}
