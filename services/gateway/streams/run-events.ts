import type { Frames } from '../../../shared/cluster/journal/frame-stream.ts'
import type { AgentEvent, FlowEvent, PlanEvent } from '../../../shared/kernel/events.ts'

/** An event of a run, plan or flow, with its number in the journal. */
export type Numbered<Event> = { seq: number; event: Event }

/** A terminal event that ends one reader's stream while the run may go on repeats the number of the last event (D4.2). */
const FRAME = /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/

/** Makes events of the text of a journal's frames, wherever the text is divided. */
export class FrameDecoder<Event extends AgentEvent | FlowEvent | PlanEvent> {
  readonly #types: ReadonlySet<string> | undefined
  #decoder = new TextDecoder()
  #rest = ''

  /** Leaves out the events of other types than these, unparsed. Without them all are taken. */
  constructor(types?: ReadonlySet<string>) {
    this.#types = types
  }

  /** Returns the events that these frames complete. The rest of a large frame does not come behind a failure. */
  take({ text, failure }: Frames): Numbered<Event>[] {
    if (failure !== undefined) this.#begin()
    this.#rest += typeof text === 'string' ? text : this.#decoder.decode(text, { stream: true })
    const blocks = this.#rest.split('\n\n')
    this.#rest = blocks.pop() ?? ''
    return blocks.flatMap((block) => this.#eventIn(block))
  }

  #begin(): void {
    this.#decoder = new TextDecoder()
    this.#rest = ''
  }

  #eventIn(block: string): Numbered<Event>[] {
    const [, seq, type = '', data] = FRAME.exec(block) ?? []
    if (data === undefined || this.#types?.has(type) === false) return []
    return [{ seq: Number(seq), event: { type, ...(JSON.parse(data) as object) } as Event }]
  }
}
