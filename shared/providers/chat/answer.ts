import { endingOf } from '../endings.ts'
import { classifyFailure } from '../failures/classify.ts'
import {
  abortedAnswer,
  contentFiltered,
  type FailedCall,
  truncatedAnswer,
  unreadableAnswer,
} from '../failures/failures.ts'
import type { Failure, ModelPart, Usage } from '../port.ts'
import {
  type ChatUsage,
  type Chunk,
  contentPieces,
  type Delta,
  isOptionalText,
  isPresent,
  parseChunk,
} from './chunk.ts'
import { EventParser } from './event-parser.ts'
import { NAMESPACE } from './request.ts'
import { TextTemplate } from './template.ts'
import { ToolCalls } from './tool-calls.ts'

/** Facts about a server that its answers have shown. Kept for as long as the provider is open. */
export type ServerQuirks = {
  /** It sends thinking in the field `reasoning_content`, and may require it back there. */
  sendsReasoning: boolean
}

type FinishReason = Extract<ModelPart, { type: 'finish' }>['reason']

/** Converts one streamed answer from bytes to parts. Unknown fields are ignored. */
export class ChatAnswer {
  /** The last part has been returned, or the call was left. */
  isOver = false
  readonly #call: FailedCall
  readonly #quirks: ServerQuirks
  readonly #events = new EventParser((data) => this.#readEvent(data))
  readonly #template = new TextTemplate()
  readonly #calls = new ToolCalls()
  #parts: ModelPart[] = []
  #openBlock: 'text' | 'thinking' | undefined
  #isRefused = false
  #finishReason: string | undefined
  #usage: ChatUsage | undefined

  constructor(call: FailedCall, quirks: ServerQuirks) {
    this.#call = call
    this.#quirks = quirks
  }

  /** Returns the parts that a piece of the stream contains. */
  read(bytes: Uint8Array): readonly ModelPart[] {
    this.#parts = []
    this.#events.push(bytes)
    return this.#parts
  }

  /** Returns the last parts, at the end of the stream. */
  end(): readonly ModelPart[] {
    this.#parts = []
    if (!this.isOver) this.#end()
    return this.#parts
  }

  fail(failure: Failure): readonly ModelPart[] {
    this.#parts = []
    this.#fail(failure)
    return this.#parts
  }

  #readEvent(data: string): void {
    if (this.isOver) return
    const text = this.#template.textOf(data)
    if (text !== undefined) this.#addDelta('text', text)
    else if (data === '[DONE]') this.#end()
    else this.#readChunk(data)
  }

  #readChunk(data: string): void {
    const chunk = parseChunk(data)
    if (!chunk) return this.#fail(unreadableAnswer('bad_chunk', this.#call))
    if (isPresent(chunk.error)) {
      return this.#fail(classifyFailure(chunk, this.#call) ?? unreadableAnswer('bad_answer', this.#call))
    }
    if (!this.#applyChunk(chunk)) return this.#fail(unreadableAnswer('bad_chunk', this.#call))
    this.#template.learn(data, chunk)
  }

  /** Returns false when the chunk is malformed. */
  #applyChunk({ usage, choices: [choice] }: Chunk): boolean {
    if (usage) this.#usage = usage
    if (!choice) return true
    const { delta, finish_reason: reason } = choice
    if (delta && !this.#applyDelta(delta)) return false
    if (typeof reason === 'string') this.#finishReason = reason
    return isOptionalText(reason)
  }

  #applyDelta({ content, refusal, reasoning_content: own, reasoning, tool_calls: calls }: Delta): boolean {
    if (typeof own === 'string') this.#quirks.sendsReasoning = true
    const thinking = own ?? reasoning
    if (!isOptionalText(thinking)) return false
    if (thinking) this.#addDelta('thinking', thinking)
    if (typeof content === 'string') this.#addDelta('text', content)
    else if (Array.isArray(content)) for (const { kind, text } of contentPieces(content)) this.#addDelta(kind, text)
    else if (isPresent(content)) return false
    if (typeof refusal === 'string' && refusal !== '') this.#addRefusal(refusal)
    return !isPresent(calls) || this.#addToolCalls(calls)
  }

  #addDelta(kind: 'text' | 'thinking', text: string): void {
    if (text === '') return
    if (this.#openBlock !== kind) this.#closeBlock()
    this.#openBlock = kind
    this.#parts.push(kind === 'text' ? { type: 'text_delta', text } : { type: 'thinking_delta', text })
  }

  /** A refusal is streamed as text. It is remembered, because the finish reason behind it is an ordinary `stop`. */
  #addRefusal(refusal: string): void {
    this.#isRefused = true
    this.#addDelta('text', refusal)
  }

  #addToolCalls(calls: unknown): boolean {
    if (!Array.isArray(calls)) return false
    if (calls.length > 0 && this.#openBlock === 'thinking') this.#closeBlock()
    for (const call of calls) this.#calls.add(call)
    return true
  }

  #closeBlock(): void {
    if (this.#openBlock === 'text') this.#parts.push({ type: 'text_end' })
    if (this.#openBlock === 'thinking') this.#parts.push({ type: 'thinking_end', ...this.#thinkingMeta() })
    this.#openBlock = undefined
  }

  /** Marks thinking for being sent back, if this server uses the field in which it may require it. */
  #thinkingMeta() {
    return this.#quirks.sendsReasoning ? { meta: { [NAMESPACE]: { field: 'reasoning_content' } } } : undefined
  }

  #end(): void {
    this.#closeBlock()
    const calls = this.#calls.end()
    if (!calls) return this.#fail(unreadableAnswer('bad_answer', this.#call))
    if (this.#finishReason === undefined) return this.#fail(truncatedAnswer(this.#call))
    const reason = this.#toFinish(this.#finishReason)
    if (typeof reason !== 'string') return this.#fail(reason)
    this.isOver = true
    this.#parts.push(...calls, { type: 'finish', reason, usage: toUsage(this.#usage) })
  }

  /** Some servers send `stop` although the answer has tool calls, and `tool_calls` although it has none. */
  #toFinish(rawReason: string): FinishReason | Failure {
    const ending = endingOf(rawReason)
    if (ending === undefined) return abortedAnswer(this.#call, rawReason)
    if (ending === 'filtered' || (ending === 'stop' && this.#isRefused)) return contentFiltered(this.#call)
    if (ending === 'length') return 'max_tokens'
    if (!this.#calls.isEmpty) return 'tool_use'
    return ending === 'stop_sequence' ? 'stop_sequence' : 'end_turn'
  }

  #fail(failure: Failure): void {
    this.isOver = true
    this.#parts.push({ type: 'failure', failure })
  }
}

function toUsage(usage: ChatUsage | undefined): Usage {
  const details = usage?.prompt_tokens_details
  return {
    input: toCount(usage?.prompt_tokens),
    cacheRead: toCount(details?.cached_tokens),
    cacheWrite: toCount(details?.cache_write_tokens),
    output: toCount(usage?.completion_tokens),
  }
}

const toCount = (tokens: unknown) => (typeof tokens === 'number' ? tokens : 0)
