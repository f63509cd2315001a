import { type ReaderFailure, readerFailure } from '../../../../shared/cluster/journal/frames.ts'
import type { AgentEvent, DoneEvent, ErrorEvent, JsonObject } from '../../../../shared/kernel/events.ts'
import { frameJson } from '../../../../shared/kernel/json.ts'
import type { Numbered } from '../../streams/run-events.ts'
import type { OpenCalls } from '../shared/open-calls.ts'
import type { Projection } from '../shared/projection.ts'
import type { Wire } from '../shared/response-stream.ts'
import { TextTemplate } from '../shared/text-template.ts'

type Facts = { id: string; model: string; created: number }
/** `isTyped`: the content is only the value that fits the client's schema. */
export type ChatOptions = Facts & { includesUsage: boolean; isTyped?: boolean }
type Finish = 'stop' | 'tool_calls'
type Choice = { index: 0; delta: JsonObject; logprobs: null; finish_reason: Finish | null }
export type ChatChunk = JsonObject & { choices?: Choice[] }

/**
 * The chunks of a chat completion. The calls of this server's tools are not shown; permission requests are answered elsewhere while the stream waits.
 * The completion ends with the calls that the client is to execute (D46.1).
 */
export class ChatProjection implements Projection<ChatChunk> {
  readonly #options: ChatOptions
  #hasText = false
  /** The number of calls that the client is to execute: the run ends with them. */
  #calls = 0
  /** The characters sent of the open block; `undefined` between two blocks. */
  #sent: number | undefined

  constructor(options: ChatOptions) {
    this.#options = options
  }

  begin(): ChatChunk[] {
    return [chatChunk(this.#options, { role: 'assistant', content: '' })]
  }

  take({ event }: Numbered<AgentEvent>, calls: OpenCalls): ChatChunk[] {
    const { isTyped } = this.#options
    if (event.type === 'text_delta') return isTyped ? [] : this.#text(event.text)
    if (event.type === 'text') return isTyped ? [] : this.#endBlock(event.text)
    if (event.type === 'tool_use' && event.executor === 'client') return [this.#call(event)]
    if (event.type === 'done') {
      const typed = isTyped && this.#calls === 0 ? this.#text(JSON.stringify(event.output)) : []
      return [...typed, ...this.#end(usageOf(event))]
    }
    if (event.type === 'plan_queued')
      return [...this.#text('plan_id' in event ? `The plan ${event.plan_id} was queued.` : event.note), ...this.#end()]
    // A client keeps the text that it has received, so the text of a repeated turn follows as a new block.
    if (calls.beginsAnew) this.#sent = undefined
    return event.type === 'error' ? [errorChunk(event)] : []
  }

  cut(code: ReaderFailure): ChatChunk[] {
    return [errorChunk(readerFailure(code))]
  }

  /** Blocks of text are separated by an empty line. */
  #text(text: string): ChatChunk[] {
    const gap = this.#hasText && this.#sent === undefined ? '\n\n' : ''
    this.#hasText = true
    this.#sent = (this.#sent ?? 0) + text.length
    return [chatChunk(this.#options, { content: gap + text })]
  }

  /** All deltas of a block, or its last ones, may be missing. */
  #endBlock(text: string): ChatChunk[] {
    const rest = text.slice(this.#sent)
    const chunks = rest === '' ? [] : this.#text(rest)
    this.#sent = undefined
    return chunks
  }

  #call(call: ClientCall): ChatChunk {
    return chatChunk(this.#options, { tool_calls: [{ index: this.#calls++, ...toolCall(call) }] })
  }

  #end(usage?: JsonObject): ChatChunk[] {
    return lastChunks(this.#options, usage, this.#calls > 0 ? 'tool_calls' : 'stop')
  }
}

/** A call that the client is to execute. */
type ClientCall = Pick<Extract<AgentEvent, { type: 'tool_use' }>, 'id' | 'tool_name' | 'input'>

const toolCall = ({ id, tool_name: name, input }: ClientCall): JsonObject => ({
  id,
  type: 'function',
  function: { name, arguments: JSON.stringify(input) },
})

export function chatChunk({ id, model, created }: Facts, delta: JsonObject, finishReason?: Finish): ChatChunk {
  const choice: Choice = { index: 0, delta, logprobs: null, finish_reason: finishReason ?? null }
  return { id, object: 'chat.completion.chunk', created, model, choices: [choice] }
}

/** The end of an answer, and the tokens used when the client has asked for them. */
export function lastChunks(options: ChatOptions, usage?: JsonObject, finish: Finish = 'stop'): ChatChunk[] {
  const last = chatChunk(options, {}, finish)
  return options.includesUsage && usage ? [last, { ...last, choices: [], usage }] : [last]
}

export const errorChunk = ({ code, error, suggestion }: Pick<ErrorEvent, 'code' | 'error' | 'suggestion'>): ChatChunk =>
  failureChunk(`${error}. ${suggestion}`, code)

export const failureChunk = (message: string, code: string | null = null): ChatChunk => ({
  error: { message, type: 'server_error', param: null, code },
})

type Tokens = Pick<DoneEvent, 'total_input_tokens' | 'total_output_tokens' | 'total_tokens'>

export const usageOf = ({ total_input_tokens, total_output_tokens, total_tokens }: Tokens): JsonObject => ({
  prompt_tokens: total_input_tokens,
  completion_tokens: total_output_tokens,
  total_tokens,
})

/** A whole completion, for a client that does not ask for a stream. */
export const completion = (
  { id, model, created }: Facts,
  { content, calls = [] }: { content: string; calls?: readonly ClientCall[] },
  usage: JsonObject,
): JsonObject => ({
  id,
  object: 'chat.completion',
  created,
  model,
  choices: [
    {
      index: 0,
      message: { role: 'assistant', refusal: null, ...saidBy({ content, calls }) },
      logprobs: null,
      finish_reason: calls.length > 0 ? 'tool_calls' : 'stop',
    },
  ],
  usage,
})

const saidBy = ({ content, calls }: { content: string; calls: readonly ClientCall[] }): JsonObject =>
  calls.length > 0 ? { content: content || null, tool_calls: calls.map(toolCall) } : { content }

export function chatWire(): Wire<ChatChunk> {
  const template = new TextTemplate()
  const rendered = (chunk: ChatChunk): string => {
    const { delta = {} } = chunk.choices?.[0] ?? {}
    const { content, role } = delta
    if (typeof content !== 'string' || role !== undefined) return `data: ${frameJson(chunk)}\n\n`
    return template.write('content', content, (text) => withContent(chunk, text))
  }
  return { render: (chunks) => chunks.map(rendered).join(''), end: 'data: [DONE]\n\n' }
}

const withContent = ({ choices = [], ...chunk }: ChatChunk, content: string): ChatChunk => ({
  ...chunk,
  choices: choices.map((choice) => ({ ...choice, delta: { content } })),
})
