import { classifyFailure, unreadable } from '../failures/classify.ts'
import { brokenOff, type FailedCall, filtered, truncated } from '../failures/failures.ts'
import type { Failure, ModelPart, Usage } from '../port.ts'
import { type ChatUsage, type Chunk, type Delta, isTextOrNothing, isThere, parseChunk, piecesOf } from './chunk.ts'
import { EventLines } from './event-lines.ts'
import { NAMESPACE } from './request.ts'
import { TextTemplate } from './template.ts'
import { ToolCalls } from './tool-calls.ts'

/** What has been seen of a server, for as long as its provider lives. */
export type Habits = { sendsReasoning: boolean }

type FinishReason = Extract<ModelPart, { type: 'finish' }>['reason']

/** One streamed answer: bytes of the stream go in, parts come out. Fields it does not know are skipped. */
export class ChatAnswer {
  /** The last part has been made. */
  isOver = false
  readonly #call: FailedCall
  readonly #habits: Habits
  readonly #events = new EventLines((data) => this.#event(data))
  readonly #template = new TextTemplate()
  readonly #calls = new ToolCalls()
  #parts: ModelPart[] = []
  #open: 'text' | 'thinking' | undefined
  #hasSaid = false
  #isRefused = false
  #finishReason: string | undefined
  #usage: ChatUsage | undefined

  constructor(call: FailedCall, habits: Habits) {
    this.#call = call
    this.#habits = habits
  }

  /** The parts that a piece of the stream makes, which are no more than it has events. */
  take(bytes: Uint8Array): readonly ModelPart[] {
    this.#parts = []
    this.#events.push(bytes)
    return this.#parts
  }

  /** The parts that the end of the stream makes. */
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

  #event(data: string): void {
    if (this.isOver) return
    const text = this.#template.textOf(data)
    if (text !== undefined) this.#say('text', text)
    else if (data === '[DONE]') this.#end()
    else this.#chunk(data)
  }

  #chunk(data: string): void {
    const chunk = parseChunk(data)
    if (!chunk) return this.#fail(unreadable('bad_chunk', this.#call))
    if (isThere(chunk.error))
      return this.#fail(classifyFailure(chunk, this.#call) ?? unreadable('bad_answer', this.#call))
    if (!this.#take(chunk)) return this.#fail(unreadable('bad_chunk', this.#call))
    this.#template.learn(data, chunk)
  }

  /** False when the chunk is malformed. */
  #take({ usage, choices: [choice] }: Chunk): boolean {
    if (usage) this.#usage = usage
    if (!choice) return true
    const { delta, finish_reason: reason } = choice
    if (delta && !this.#takeDelta(delta)) return false
    if (typeof reason === 'string') this.#finishReason = reason
    return isTextOrNothing(reason)
  }

  #takeDelta({ content, refusal, reasoning_content: own, reasoning, tool_calls: calls }: Delta): boolean {
    if (typeof own === 'string') this.#habits.sendsReasoning = true
    const thought = own ?? reasoning
    if (!isTextOrNothing(thought)) return false
    if (thought) this.#say('thinking', thought)
    if (typeof content === 'string') this.#say('text', content)
    else if (Array.isArray(content)) for (const { kind, text } of piecesOf(content)) this.#say(kind, text)
    else if (isThere(content)) return false
    if (typeof refusal === 'string' && refusal !== '') this.#refuse(refusal)
    return !isThere(calls) || this.#takeCalls(calls)
  }

  #say(kind: 'text' | 'thinking', text: string): void {
    if (text === '') return
    if (this.#open !== kind) this.#close()
    this.#open = kind
    this.#hasSaid = true
    this.#parts.push(kind === 'text' ? { type: 'text_delta', text } : { type: 'thinking_delta', text })
  }

  /** A refusal is told as the model's words; the reason for its end says `stop` all the same. */
  #refuse(refusal: string): void {
    this.#isRefused = true
    this.#say('text', refusal)
  }

  #takeCalls(calls: unknown): boolean {
    if (!Array.isArray(calls)) return false
    if (calls.length > 0 && this.#open === 'thinking') this.#close()
    for (const call of calls) this.#calls.add(call)
    return true
  }

  #close(): void {
    if (this.#open === 'text') this.#parts.push({ type: 'text_end' })
    if (this.#open === 'thinking') this.#parts.push({ type: 'thinking_end', ...this.#thinkingMeta() })
    this.#open = undefined
  }

  /** Marks thinking as this server's own, where it has been seen to send it in the field in which it may want it back. */
  #thinkingMeta() {
    return this.#habits.sendsReasoning ? { meta: { [NAMESPACE]: { field: 'reasoning_content' } } } : undefined
  }

  #end(): void {
    this.#close()
    const calls = this.#calls.end()
    if (!calls) return this.#fail(unreadable('bad_answer', this.#call))
    this.#parts.push(...calls)
    if (this.#finishReason === undefined) return this.#fail(truncated(this.#call))
    const reason = this.#finish(this.#finishReason)
    if (typeof reason !== 'string') return this.#fail(reason)
    this.isOver = true
    this.#parts.push({ type: 'finish', reason, usage: toUsage(this.#usage) })
  }

  /** What the end of the answer means. Some servers say `stop` although they call tools, and `tool_calls` although they do not. */
  #finish(raw: string): FinishReason | Failure {
    const hasCalls = !this.#calls.isEmpty
    if (raw === 'length') return 'max_tokens'
    if (raw === 'content_filter' || (raw === 'stop' && this.#isRefused)) return filtered(this.#call)
    const isKnown = raw === 'stop' || raw === 'tool_calls' || raw === 'function_call'
    if (!isKnown && !hasCalls && !this.#hasSaid) return brokenOff(this.#call, raw)
    if (hasCalls) return 'tool_use'
    return raw === 'stop_sequence' ? 'stop_sequence' : 'end_turn'
  }

  #fail(failure: Failure): void {
    this.isOver = true
    this.#parts.push({ type: 'failure', failure })
  }
}

function toUsage(usage: ChatUsage | undefined): Usage {
  const details = usage?.prompt_tokens_details
  return {
    input: count(usage?.prompt_tokens),
    cacheRead: count(details?.cached_tokens),
    cacheWrite: count(details?.cache_write_tokens),
    output: count(usage?.completion_tokens),
  }
}

const count = (tokens: unknown) => (typeof tokens === 'number' ? tokens : 0)
