import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { type Block, DELTAS, type EndedItem, itemOf, type OpenBlock, PARTS, partAt, partOf } from './response-items.ts'

export type ResponseEvent = JsonObject & { type: string; sequence_number: number }

/** The items of a response, and the numbered events in which they come. */
export class ResponseOutput {
  #items: JsonObject[] = []
  #sequence = 0
  #open: OpenBlock | undefined
  /** Delivered files, which become annotations of the next text. */
  #files: JsonObject[] = []

  get items(): readonly JsonObject[] {
    return this.#items
  }

  event(type: string, fields: JsonObject): ResponseEvent {
    return { type, sequence_number: this.#sequence++, ...fields }
  }

  /** Drops all after the first two events, with which each response begins. */
  restart(): void {
    this.#items = []
    this.#files = []
    this.#sequence = FIRST
  }

  /** Adds a piece to the open block, or begins a block with this id. */
  delta(block: Block, delta: string, id: string): ResponseEvent[] {
    const opened = this.#open?.block === block ? [] : [...this.close(), ...this.#begin(block, id)]
    if (!this.#open) return opened
    this.#open.text += delta
    const event = this.#deltaOf(this.#open, delta)
    return opened.length > 0 ? [...opened, event] : [event]
  }

  /** Written out by hand for speed, since most events of a stream are deltas. */
  #deltaOf({ block, id: item_id, index: output_index }: OpenBlock, delta: string): ResponseEvent {
    const sequence_number = this.#sequence++
    return block === 'text'
      ? { type: TEXT_DELTA, sequence_number, item_id, output_index, content_index: 0, logprobs: [], delta }
      : { type: THINKING_DELTA, sequence_number, item_id, output_index, summary_index: 0, delta }
  }

  /**
   * Ends a block. A record of a run keeps the whole blocks, without the pieces in which they came (D20). The last
   * pieces of a block may be missing, too (D32.7a).
   */
  whole(block: Block, text: string, id: string): ResponseEvent[] {
    const rest = this.#open?.block === block ? text.slice(this.#open.text.length) : text
    return [...(rest === '' ? [] : this.delta(block, rest, id)), ...this.close()]
  }

  close(): ResponseEvent[] {
    const open = this.#open
    if (!open) return []
    this.#open = undefined
    const { block, index, text } = open
    const part = block === 'text' ? { ...partOf(open), annotations: this.#files.splice(0) } : partOf(open)
    const item = itemOf({ ...open, status: 'completed', parts: [part] })
    this.#items[index] = item
    const at = partAt(open)
    return [
      this.event(`${DELTAS[block]}.done`, { ...at, text, ...(block === 'text' && { logprobs: [] }) }),
      this.event(`${PARTS[block]}.done`, { ...at, part }),
      this.event('response.output_item.done', { output_index: index, item }),
    ]
  }

  /** Keeps a delivered file, which becomes an annotation of the next text. */
  bring(fileId: string, filename: string): [] {
    this.#files.push({ type: 'file_path', file_id: fileId, filename, index: 0 })
    return []
  }

  /** Adds an item that is complete at once. */
  add(item: JsonObject): ResponseEvent[] {
    const output_index = this.#items.push(item) - 1
    return ['added', 'done'].map((what) => this.event(`response.output_item.${what}`, { output_index, item }))
  }

  /** Adds a call that has ended, which began with `begun`. */
  addCall(begun: JsonObject, ended: EndedItem): ResponseEvent[] {
    const output_index = this.#items.push(ended) - 1
    const { id: item_id, status, arguments: input } = ended
    const at = { item_id, output_index }
    return [
      this.event('response.output_item.added', { output_index, item: begun }),
      this.event('response.mcp_call.in_progress', at),
      this.event('response.mcp_call_arguments.done', { ...at, arguments: input }),
      this.event(`response.mcp_call.${status}`, at),
      this.event('response.output_item.done', { output_index, item: ended }),
    ]
  }

  /** Adds a call that the client is to execute. */
  addFunctionCall(item: JsonObject & { id: string; arguments: string }): ResponseEvent[] {
    const closed = this.close()
    const output_index = this.#items.push(item) - 1
    const { id: item_id, arguments: input } = item
    const at = { item_id, output_index }
    return [
      ...closed,
      this.event('response.output_item.added', {
        output_index,
        item: { ...item, arguments: '', status: 'in_progress' },
      }),
      this.event('response.function_call_arguments.delta', { ...at, delta: input }),
      this.event('response.function_call_arguments.done', { ...at, name: item['name'], arguments: input }),
      this.event('response.output_item.done', { output_index, item }),
    ]
  }

  #begin(block: Block, id: string): ResponseEvent[] {
    const open = { block, id: `${block === 'text' ? 'msg' : 'rs'}_${id}`, index: this.#items.length, text: '' }
    this.#open = open
    const item = itemOf({ ...open, status: 'in_progress', parts: [] })
    this.#items.push(item)
    const at = partAt(open)
    return [
      this.event('response.output_item.added', { output_index: open.index, item }),
      this.event(`${PARTS[block]}.added`, { ...at, part: partOf(open) }),
    ]
  }
}

const TEXT_DELTA = `${DELTAS.text}.delta`
const THINKING_DELTA = `${DELTAS.thinking}.delta`

/** The number of the first event after those that begin a response. */
const FIRST = 2
