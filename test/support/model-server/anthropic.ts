import type { ToolCall } from './acts.ts'
import { anthropicError } from './anthropic-errors.ts'
import type { Failure, Finish, Usage } from './script.ts'
import { type Block, type Call, type Encoder, type Ending, event, inputOf, type Wire } from './wire.ts'

/** Anthropic's messages API. */
export const anthropic: Wire = {
  format: 'anthropic',
  requestIdHeader: 'request-id',
  stream: (call) => new AnthropicStream(call),
  whole,
  errorBody: anthropicError,
  contextTooLong: { status: 400, message: 'prompt is too long: 200251 tokens > 200000 maximum' },
  opensBeforeFailing: false,
}

/** Encodes a stream of numbered blocks, of which one is open at a time. */
class AnthropicStream implements Encoder {
  readonly #call: Call
  #index = -1
  #open: 'text' | 'thinking' | undefined

  constructor(call: Call) {
    this.#call = call
  }

  open(): string {
    const { usage } = this.#call
    const message = { ...envelope(this.#call), content: [], stop_reason: null, stop_sequence: null }
    return event('message_start', {
      type: 'message_start',
      message: { ...message, usage: { ...inputUsage(usage), ...tier(usage), output_tokens: 1 } },
    })
  }

  text(piece: string): string {
    return this.#say('text', { type: 'text', text: '' }) + this.#delta({ type: 'text_delta', text: piece })
  }

  thinking(piece: string): string {
    const block = { type: 'thinking', thinking: '', signature: '' }
    return this.#say('thinking', block) + this.#delta({ type: 'thinking_delta', thinking: piece })
  }

  tool(tool: ToolCall): string[] {
    const ended = this.#end()
    const id = tool.id ?? `toolu_${this.#call.id}${this.#index + 1}`
    const start = this.#start({ type: 'tool_use', id, name: tool.name, input: {} })
    const empty = this.#delta({ type: 'input_json_delta', partial_json: '' })
    const pieces = tool.pieces.map((piece) => this.#delta({ type: 'input_json_delta', partial_json: piece }))
    return [ended + start + empty, ...pieces, this.#stop()]
  }

  error(failure: Failure): string {
    return event('error', anthropicError(failure, this.#call.id))
  }

  close({ stopSequence, usage, ...ending }: Ending): string {
    const delta = { stop_reason: stopReason(ending, stopSequence), stop_sequence: stopSequence ?? null }
    const end = event('message_delta', { type: 'message_delta', delta, usage: fullUsage(usage) })
    return this.#end() + end + event('message_stop', { type: 'message_stop' })
  }

  #say(kind: 'text' | 'thinking', block: unknown): string {
    if (this.#open === kind) return ''
    const ended = this.#end()
    this.#open = kind
    return ended + this.#start(block)
  }

  /** The first block is followed by a ping, as Anthropic sends it. */
  #start(block: unknown): string {
    this.#index += 1
    const start = event('content_block_start', {
      type: 'content_block_start',
      index: this.#index,
      content_block: block,
    })
    return this.#index === 0 ? `${start}event: ping\ndata: {"type": "ping"}\n\n` : start
  }

  #delta(delta: unknown): string {
    return event('content_block_delta', { type: 'content_block_delta', index: this.#index, delta })
  }

  /** A thinking block is signed before it closes. */
  #end(): string {
    if (!this.#open) return ''
    const signature = `Er${this.#call.id}${this.#index}`
    const signed = this.#open === 'thinking' ? this.#delta({ type: 'signature_delta', signature }) : ''
    this.#open = undefined
    return signed + this.#stop()
  }

  #stop(): string {
    return event('content_block_stop', { type: 'content_block_stop', index: this.#index })
  }
}

const envelope = ({ id, model }: Call) => ({ model, id: `msg_${id}`, type: 'message', role: 'assistant' })

function whole(call: Call, blocks: Block[], { stopSequence, usage, ...ending }: Ending) {
  return {
    ...envelope(call),
    content: blocks.map((block, index) => wholeBlock(call, block, index)),
    stop_reason: stopReason(ending, stopSequence),
    stop_sequence: stopSequence ?? null,
    usage: { ...fullUsage(usage), ...tier(usage) },
  }
}

function wholeBlock(call: Call, block: Block, index: number) {
  if (block.kind === 'text') return { type: 'text', text: block.text }
  if (block.kind === 'thinking') {
    return { type: 'thinking', thinking: block.text, signature: `Er${call.id}${index}` }
  }
  const { id = `toolu_${call.id}${index}`, name } = block.call
  return { type: 'tool_use', id, name, input: inputOf(block.call) }
}

const STOP_REASON: Record<Finish, string> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'refusal',
}

type Reasons = Pick<Ending, 'finish' | 'rawFinish'>

const stopReason = ({ finish, rawFinish }: Reasons, stopSequence: string | undefined) =>
  rawFinish ?? (stopSequence === undefined ? STOP_REASON[finish] : 'stop_sequence')

/** In this format `input_tokens` excludes cached tokens: the three counts are disjoint. */
const inputUsage = ({ input, cacheRead, cacheWrite }: Usage) => ({
  input_tokens: input - cacheRead - cacheWrite,
  cache_creation_input_tokens: cacheWrite,
  cache_read_input_tokens: cacheRead,
})

const fullUsage = (usage: Usage) => ({
  ...inputUsage(usage),
  output_tokens: usage.output,
  ...(usage.reasoning > 0 && { output_tokens_details: { thinking_tokens: usage.reasoning } }),
})

const tier = ({ cacheWrite }: Usage) => ({
  cache_creation: { ephemeral_5m_input_tokens: cacheWrite, ephemeral_1h_input_tokens: 0 },
  service_tier: 'standard',
})
