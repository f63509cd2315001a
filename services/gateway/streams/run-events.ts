import type { Frames } from '../../../shared/cluster/journal/frame-stream.ts'
import type { RunEvent } from '../../../shared/kernel/events.ts'

/** An event of a run, plan or flow, with its number in the journal. */
export type Numbered<Event> = { seq: number; event: Event }

const [ID, EVENT, DATA, END] = ['id: ', '\nevent: ', '\ndata: ', '\n\n']

/** Parses events from the text of a journal's frames, which may be divided at any place. */
export class FrameDecoder<Event extends RunEvent> {
  readonly #types: ReadonlySet<string> | undefined
  #decoder = new TextDecoder()
  #rest = ''

  /** Skips events of other types without parsing them. Without `types` no event is skipped. */
  constructor(types?: ReadonlySet<string>) {
    this.#types = types
  }

  /** Returns the events that these frames complete. After a failure the rest of an incomplete frame never comes. */
  take({ text, failure }: Frames): Numbered<Event>[] {
    if (failure !== undefined) this.#begin()
    this.#rest += typeof text === 'string' ? text : this.#decoder.decode(text, { stream: true })
    const read = this.#rest
    const events: Numbered<Event>[] = []
    let from = 0
    for (let to = read.indexOf(END); to >= 0; to = read.indexOf(END, from)) {
      this.#read(read.slice(from, to), events)
      from = to + END.length
    }
    this.#rest = read.slice(from)
    return events
  }

  #begin(): void {
    this.#decoder = new TextDecoder()
    this.#rest = ''
  }

  /**
   * Adds the event of a frame; a comment has none. A terminal event that ends one reader's stream while the run may go on repeats the number
   * of the last event (D4.2). The parts are found with `indexOf`: a regular expression and a copy of the event would take twice the time.
   */
  #read(frame: string, events: Numbered<Event>[]): void {
    const [type, data] = [frame.indexOf(EVENT), frame.indexOf(DATA)]
    if (!frame.startsWith(ID) || type < 0 || data < type) return
    const name = frame.slice(type + EVENT.length, data)
    if (this.#types?.has(name) === false) return
    const event = JSON.parse(frame.slice(data + DATA.length)) as Event
    event.type = name as Event['type']
    events.push({ seq: Number(frame.slice(ID.length, type)), event })
  }
}
