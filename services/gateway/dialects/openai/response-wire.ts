import { frameJson } from '../../../../shared/kernel/json.ts'
import type { Wire } from '../shared/response-stream.ts'
import type { ResponseEvent } from './response-output.ts'

/** Writes the events behind sequence number `after`; the client has the earlier ones. */
export function responseWire(after = -1): Wire<ResponseEvent> {
  const deltas = new DeltaWriter()
  return {
    render(events) {
      let text = ''
      for (const event of events) {
        if (event.sequence_number <= after) continue
        text += typeof event['delta'] === 'string' ? deltas.write(event, event['delta']) : rendered(event)
      }
      return text
    },
    end: '',
  }
}

const rendered = (event: object & { type: string }): string => `event: ${event.type}\ndata: ${frameJson(event)}\n\n`

/**
 * Writes the pieces of a block, of which a stream is mostly made. They differ only in number and text, so the rest is serialized once for
 * each block.
 */
class DeltaWriter {
  #type = ''
  #item: unknown
  #head = ''
  #fields = ''

  write(event: ResponseEvent, delta: string): string {
    if (event.type !== this.#type || event['item_id'] !== this.#item) this.#begin(event)
    return `${this.#head}${event.sequence_number},${this.#fields}${frameJson(delta)}}\n\n`
  }

  #begin({ type, sequence_number: _number, delta: _delta, ...fields }: ResponseEvent): void {
    this.#type = type
    this.#item = fields['item_id']
    this.#head = `event: ${type}\ndata: {"type":${JSON.stringify(type)},"sequence_number":`
    this.#fields = `${frameJson(fields).slice(1, -1)},"delta":`
  }
}
