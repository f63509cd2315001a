import { added } from '../../../kernel/async/batch.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import { EventParser, LineParser, type StreamParser } from '../../../platform/net/event-parser.ts'
import { classifyFailure } from '../failures/classify.ts'
import {
  abortedAnswer,
  contentFiltered,
  emptyAnswer,
  type FailedCall,
  truncatedAnswer,
  unreadableAnswer,
} from '../failures/failures.ts'
import { endingOf } from '../finish-reasons.ts'
import { countedIn } from '../flex.ts'
import type { Failure, ModelPart } from '../port.ts'
import { type Choice, type Chunk, contentPieces, type Delta, isOptionalText, isPresent, parseChunk } from './chunk.ts'
import { NAMESPACE } from './conversation.ts'
import { ollamaChunk } from './ollama.ts'
import { ReasoningDetails } from './reasoning.ts'
import type { ServerQuirks } from './request.ts'
import { TextTemplate } from './template.ts'
import { ThinkTags } from './think-tags.ts'
import { ToolCalls } from './tool-calls.ts'
import { type ChatUsage, toUsage } from './usage.ts'

export type AnswerSource = {
  call: FailedCall
  quirks: ServerQuirks
  stopSequences: readonly string[]
  /** `lines`: Ollama's own format, a JSON object on each line. */
  framing: 'events' | 'lines'
  /** Whether an answer without text and without a tool call is valid. */
  mayBeEmpty: boolean
}

type FinishReason = Extract<ModelPart, { type: 'finish' }>['reason']

/** Converts one answer from bytes to parts. Unknown fields are ignored. */
export class ChatAnswer {
  /** Whether the last part was returned, or the caller has left. */
  isOver = false
  readonly #source: AnswerSource
  readonly #stream: StreamParser
  readonly #template = new TextTemplate()
  readonly #tags = new ThinkTags()
  /** Created with the first piece of a tool call. */
  #calls: ToolCalls | undefined
  #details: ReasoningDetails | undefined
  /** The bytes of an answer that is one JSON document instead of an event stream. */
  #document: Uint8Array[] | undefined
  #hasBytes = false
  #parts: ModelPart[] = []
  #openBlock: 'text' | 'thinking' | undefined
  #hasText = false
  #isRefused = false
  #finishReason: string | undefined
  #usage: ChatUsage | undefined
  #tier: unknown

  constructor(source: AnswerSource) {
    this.#source = source
    this.#stream =
      source.framing === 'lines'
        ? new LineParser((line) => this.#readLine(line))
        : new EventParser((data) => this.#readEvent(data))
  }

  /** Whether the model has sent its finish reason: the answer is then complete, even if the connection breaks. */
  get isFinished(): boolean {
    return this.#finishReason !== undefined
  }

  /** Returns the parts that a piece of the stream contains. */
  read(bytes: Uint8Array): readonly ModelPart[] {
    this.#parts = []
    if (!this.#hasBytes && this.#source.framing === 'events' && isDocument(bytes)) this.#document = []
    this.#hasBytes = true
    if (this.#document) this.#document.push(bytes)
    else this.#stream.push(bytes)
    return this.#parts
  }

  /** Returns the last parts, at the end of the stream. */
  end(): readonly ModelPart[] {
    this.#parts = []
    if (this.#document) this.#readDocument(new TextDecoder().decode(Buffer.concat(this.#document)))
    else this.#stream.end()
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
    if (text !== undefined) this.#addText(text)
    else if (data === '[DONE]') this.#done()
    else this.#readChunk(data)
  }

  #readLine(json: string): void {
    if (this.isOver) return
    const line = ollamaChunk(json)
    if (line && isPresent(line.chunk.error)) return this.#failWith(line.chunk)
    if (!line || !this.#applyChunk(line.chunk)) return this.#fail(unreadableAnswer('bad_chunk', this.#source.call))
    if (line.isLast) this.#end()
  }

  #readChunk(data: string): void {
    const chunk = parseChunk(data)
    if (!chunk) return this.#fail(unreadableAnswer('bad_chunk', this.#source.call))
    if (isPresent(chunk.error)) return this.#failWith(chunk)
    if (!this.#applyChunk(chunk)) return this.#fail(unreadableAnswer('bad_chunk', this.#source.call))
    this.#template.learn(data, chunk)
  }

  /** Reads a whole completion, or an error that was sent with a status of success. */
  #readDocument(json: string): void {
    const chunk = parseChunk(json)
    if (chunk && isPresent(chunk.error)) return this.#failWith(chunk)
    const isCompletion = chunk?.choices.some(({ message }) => isPresent(message)) && this.#applyChunk(chunk)
    if (!isCompletion) return this.#fail(unreadableAnswer('bad_answer', this.#source.call))
    this.#done()
  }

  #failWith(chunk: Chunk): void {
    const { call } = this.#source
    this.#fail(classifyFailure({ value: chunk }, call) ?? unreadableAnswer('bad_answer', call))
  }

  /** Returns false when the chunk is malformed. */
  #applyChunk({ usage, service_tier: tier, choices: [choice] }: Chunk): boolean {
    if (usage) this.#usage = usage
    if (isPresent(tier)) this.#tier = tier
    if (!choice) return true
    const { delta = choice.message, finish_reason: reason } = choice
    if (choice.usage) this.#usage = choice.usage
    if (delta && !this.#applyDelta(delta)) return false
    if (!isOptionalText(reason)) return false
    const stop = this.#findStop(choice)
    if (reason) this.#finishReason = stop ? 'stop_sequence' : reason
    return true
  }

  /** Whether the server reports that a stop sequence of the request ended the answer. */
  #findStop({ stop_reason: stop, matched_stop: matched = stop }: Choice): boolean {
    if (matched !== undefined) this.#source.quirks.namesStops = true
    return typeof matched === 'string' && this.#source.stopSequences.includes(matched)
  }

  #applyDelta(delta: Delta): boolean {
    const { content, refusal, tool_calls: calls } = delta
    this.#addThinking(delta)
    if (typeof content === 'string') this.#addText(content)
    else if (Array.isArray(content)) for (const { kind, text } of contentPieces(content)) this.#addDelta(kind, text)
    else if (isPresent(content)) return false
    if (typeof refusal === 'string' && refusal !== '') this.#addRefusal(refusal)
    return !isPresent(calls) || this.#addToolCalls(calls)
  }

  /** Some servers send the same thinking in two fields, or one of the fields is empty. */
  #addThinking({ reasoning_content: own, reasoning, reasoning_details: details }: Delta): void {
    if (typeof own === 'string') this.#source.quirks.sendsReasoning = true
    const detailed = isPresent(details) ? this.#addDetails(details) : ''
    this.#addDelta('thinking', textOf(own) || textOf(reasoning) || detailed)
  }

  #addDetails(details: unknown): string {
    this.#details ??= new ReasoningDetails()
    return this.#details.add(details)
  }

  #addText(text: string): void {
    if (this.#tags.isDone) return this.#addDelta('text', text)
    for (const piece of this.#tags.push(text)) this.#addDelta(piece.kind, piece.text)
  }

  #addDelta(kind: 'text' | 'thinking', text: string): void {
    if (text === '') return
    if (this.#openBlock !== kind) this.#closeBlock()
    this.#openBlock = kind
    if (kind === 'text') this.#hasText = true
    const part = { type: kind === 'text' ? 'text_delta' : 'thinking_delta', text } as const
    this.#parts = added(this.#parts, part)
  }

  /** A refusal is streamed as text. It is remembered, because the finish reason after it is an ordinary `stop`. */
  #addRefusal(refusal: string): void {
    this.#isRefused = true
    this.#addDelta('text', refusal)
  }

  #addToolCalls(calls: unknown): boolean {
    if (!Array.isArray(calls)) return false
    if (calls.length > 0 && this.#openBlock === 'thinking') this.#closeBlock()
    for (const call of calls) this.#addToolCall(call)
    return true
  }

  #addToolCall(call: unknown): void {
    this.#calls ??= new ToolCalls(this.#source.quirks.origin)
    this.#calls.add(call)
  }

  #closeBlock(): void {
    if (this.#openBlock === 'text') this.#parts.push({ type: 'text_end' })
    if (this.#openBlock === 'thinking')
      this.#endThinking(this.#source.quirks.sendsReasoning && { field: 'reasoning_content' })
    this.#openBlock = undefined
  }

  /** `meta` is what this server may require back. */
  #endThinking(meta: JsonObject | false): void {
    const { origin } = this.#source.quirks
    this.#parts.push({ type: 'thinking_end', ...(meta && { meta: { [NAMESPACE]: { origin, ...meta } } }) })
  }

  /** Some servers end without a finish reason. The answer is taken as complete when it has content and no tool call is incomplete. */
  #done(): void {
    const isWhole = this.#calls ? this.#calls.areComplete : this.#hasText
    if (isWhole) this.#finishReason ??= 'stop'
    this.#end()
  }

  #end(): void {
    for (const { kind, text } of this.#tags.flush()) this.#addDelta(kind, text)
    this.#closeBlock()
    const { call } = this.#source
    const calls = this.#calls ? this.#calls.end() : []
    if (!calls) return this.#fail(unreadableAnswer('bad_answer', call))
    if (this.#finishReason === undefined) return this.#fail(truncatedAnswer(call))
    const reason = this.#toFinish(this.#finishReason)
    if (typeof reason !== 'string') return this.#fail(reason)
    this.isOver = true
    const reasoning_details = this.#details?.all
    if (reasoning_details?.length) this.#endThinking({ reasoning_details })
    const usage = toUsage(this.#usage)
    this.#parts.push(...calls, {
      type: 'finish',
      reason,
      usage: call.type === 'openai' ? countedIn(this.#tier, usage) : usage,
    })
  }

  /** Some servers send `stop` although the answer has tool calls, and `tool_calls` although it has none. */
  #toFinish(rawReason: string): FinishReason | Failure {
    const { call, mayBeEmpty } = this.#source
    const ending = endingOf(rawReason)
    if (ending === undefined) return abortedAnswer(call, rawReason)
    if (ending === 'filtered' || (ending === 'stop' && this.#isRefused)) return contentFiltered(call)
    if (ending === 'length') return 'max_tokens'
    if (this.#calls) return 'tool_use'
    if (ending === 'stop_sequence') return ending
    return this.#hasText || mayBeEmpty ? 'end_turn' : emptyAnswer(call)
  }

  #fail(failure: Failure): void {
    this.isOver = true
    this.#parts.push({ type: 'failure', failure })
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** No line of an event stream begins like a JSON object or array. */
function isDocument(bytes: Uint8Array): boolean {
  const start = Buffer.from(bytes.subarray(0, 64)).toString().trimStart()
  return start.startsWith('{') || start.startsWith('[')
}
