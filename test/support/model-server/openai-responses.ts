import type { ToolCall } from './acts.ts'
import { openaiError } from './openai-errors.ts'
import {
  callItem,
  type Item,
  messageItem,
  reasoningItem,
  responseOf,
  type Status,
  statusOf,
} from './openai-response.ts'
import type { Failure } from './script.ts'
import { type Block, type Call, type Encoder, type Ending, event, type Wire } from './wire.ts'

/** OpenAI's responses API, which `@ai-sdk/openai` uses by default. */
export const openaiResponses: Wire = {
  format: 'openai-responses',
  requestIdHeader: 'x-request-id',
  stream: (call) => new ResponseStream(call),
  whole: (call, blocks, ending) => {
    const output = blocks.map((block, index) => wholeItem(call, block, index))
    return responseOf(call, { status: statusOf(ending), output, ending })
  },
  errorBody: (failure) => ({ error: openaiError(failure, 'input') }),
  contextTooLong: {
    status: 400,
    message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
    code: 'context_length_exceeded',
  },
  opensBeforeFailing: true,
}

function wholeItem(call: Call, block: Block, index: number): Item {
  if (block.kind === 'tool') return callItem(call, index, block.call)
  return block.kind === 'text' ? messageItem(call, index, block.text) : reasoningItem(call, index, block.text)
}

/** Encodes numbered events. Each item is added, filled and done, and is repeated in the response that ends the stream. */
class ResponseStream implements Encoder {
  readonly #call: Call
  readonly #output: Item[] = []
  #sequence = 0
  #open: { kind: 'text' | 'thinking'; item: Item; text: string } | undefined

  constructor(call: Call) {
    this.#call = call
  }

  open(): string {
    return this.#response('response.created', 'in_progress') + this.#response('response.in_progress', 'in_progress')
  }

  text(piece: string): string {
    return this.#say('text', piece)
  }

  thinking(piece: string): string {
    return this.#say('thinking', piece)
  }

  tool(call: ToolCall): string[] {
    const ended = this.#end()
    const item = callItem(this.#call, this.#output.length, call)
    const at = { item_id: item.id, output_index: this.#output.length }
    const added = this.#added({ ...item, status: 'in_progress', arguments: '' })
    const name = 'response.function_call_arguments'
    const deltas = call.pieces.map((delta) => this.#event(`${name}.delta`, { ...at, delta }))
    const done = this.#event(`${name}.done`, { ...at, arguments: call.pieces.join('') })
    return [ended + added, ...deltas, done + this.#done(item)]
  }

  error(failure: Failure): string {
    const error = openaiError(failure, 'input')
    const failed = responseOf(this.#call, { status: 'failed', output: this.#output, error })
    const { type, code, message, param } = error
    return (
      this.#event('error', { error: { type, code, message, param } }) +
      this.#event('response.failed', { response: failed })
    )
  }

  close(ending: Ending): string {
    const status = statusOf(ending)
    return this.#end() + this.#response(`response.${status}`, status, ending)
  }

  #say(kind: 'text' | 'thinking', delta: string): string {
    const before = this.#open?.kind === kind ? '' : this.#end() + this.#begin(kind)
    if (this.#open) this.#open.text += delta
    return before + this.#part(kind === 'text' ? 'output_text.delta' : 'reasoning_summary_text.delta', { delta })
  }

  #begin(kind: 'text' | 'thinking'): string {
    const index = this.#output.length
    const item = kind === 'text' ? messageItem(this.#call, index) : reasoningItem(this.#call, index)
    this.#open = { kind, item, text: '' }
    return this.#added(item) + this.#part(`${PART[kind]}.added`, { part: partOf(kind, '') })
  }

  #end(): string {
    if (!this.#open) return ''
    const { kind, text } = this.#open
    const last = kind === 'text' ? 'output_text.done' : 'reasoning_summary_text.done'
    const full = kind === 'text' ? messageItem : reasoningItem
    const ended = this.#part(last, { text }) + this.#part(`${PART[kind]}.done`, { part: partOf(kind, text) })
    this.#open = undefined
    return ended + this.#done(full(this.#call, this.#output.length, text))
  }

  /** Encodes an event about the only part of the open item. */
  #part(name: string, data: object): string {
    if (!this.#open) return ''
    const text = this.#open.kind === 'text'
    const place = { item_id: this.#open.item.id, output_index: this.#output.length }
    const part = text ? { content_index: 0 } : { summary_index: 0 }
    return this.#event(`response.${name}`, {
      ...place,
      ...part,
      ...data,
      ...(text && !('part' in data) && { logprobs: [] }),
    })
  }

  #added(item: Item): string {
    return this.#event('response.output_item.added', { output_index: this.#output.length, item })
  }

  #done(item: Item): string {
    this.#output.push(item)
    return this.#event('response.output_item.done', { output_index: this.#output.length - 1, item })
  }

  #response(name: string, status: Status, ending?: Ending): string {
    const response = responseOf(this.#call, { status, output: this.#output, ...(ending && { ending }) })
    return this.#event(name, { response })
  }

  #event(type: string, data: object): string {
    return event(type, { type, sequence_number: this.#sequence++, ...data })
  }
}

const PART = { text: 'content_part', thinking: 'reasoning_summary_part' }

const partOf = (kind: 'text' | 'thinking', text: string) =>
  kind === 'text' ? { type: 'output_text', annotations: [], logprobs: [], text } : { type: 'summary_text', text }
