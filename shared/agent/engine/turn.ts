import { added, type Batched, eachOf } from '../../kernel/async/batch.ts'
import { eventLoop } from '../../kernel/async/loop-budget.ts'
import type { AgentEvent } from '../../kernel/events.ts'
import type { CallPart } from '../providers/failures/retry.ts'
import type { AssistantBlock, CountedUsage, Failure, ModelPart, ModelRoute } from '../providers/port.ts'
import type { ToolBox } from '../tools/port.ts'
import type { OpenCall } from './account.ts'
import { knownCall } from './known-call.ts'
import { StopMatcher } from './stop-sequences.ts'
import { TextBuilder } from './text-builder.ts'
import { isPossiblyCut } from './tool-input.ts'

export type ToolCall = Extract<ModelPart, { type: 'tool_call' }> & {
  /** The output limit may have cut its input: the call is not run (D4.4). */
  isCut?: boolean
  /** Its input held JSON as text. */
  isReread?: boolean
  /** Whether the client executes it (D45). Missing if a process of an older release has stored the call. */
  isForClient?: boolean
}

export type AnswerOptions = { stopSequences: readonly string[]; tools: Pick<ToolBox, 'tools' | 'find'> }

/** The outcome of one model call. */
export type Answer = {
  blocks: AssistantBlock[]
  toolCalls: ToolCall[]
  outputChars: number
  /** `failed`: see `failure`. `aborted`: the parts ended without a `finish`, because the run's signal was aborted. */
  outcome: 'complete' | 'stopped' | 'failed' | 'aborted'
  /** Missing when the provider has reported no token counts, or the call was cut off before. */
  usage?: CountedUsage
  failure?: Failure
  /** Set when the fallback served the turn. */
  servedBy?: ModelRoute
}

type AnswerStep = IteratorResult<readonly AgentEvent[], Answer>

/**
 * A model's answer as events (D4.3). Parts that came together give one array. Enforces the stop sequences, counts the usage, and returns the
 * whole answer. Not a generator: a generator makes four more promises for each read of the connection.
 */
export class AnswerEvents implements AsyncIterableIterator<readonly AgentEvent[], Answer, undefined> {
  readonly #parts: AsyncIterator<Batched<CallPart>>
  readonly #reader: AnswerReader
  readonly #call: OpenCall
  #hasEnded = false

  constructor(answer: AsyncIterable<Batched<CallPart>>, options: AnswerOptions, call: OpenCall) {
    this.#parts = answer[Symbol.asyncIterator]()
    this.#reader = new AnswerReader(options)
    this.#call = call
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<AnswerStep> {
    return this.#reader.isOver || this.#hasEnded ? this.return() : this.#parts.next().then(this.#take, this.#fail)
  }

  /** Leaves the rest of the model's answer unread. */
  async return(): Promise<AnswerStep> {
    try {
      if (!this.#hasEnded) await this.#parts.return?.()
    } finally {
      this.#end()
    }
    return { done: true, value: this.#reader.answer }
  }

  readonly #take = ({ done, value }: IteratorResult<Batched<CallPart>>): AnswerStep | Promise<AnswerStep> => {
    if (done) this.#end()
    if (done) return { done, value: this.#reader.answer }
    const parts = eachOf(value)
    const turn = this.#reader.endsLargeText(parts) ? eventLoop.enter() : undefined
    return turn ? turn.then(() => this.#read(parts)) : this.#read(parts)
  }

  #read(parts: readonly CallPart[]): AnswerStep | Promise<AnswerStep> {
    try {
      for (const part of parts) {
        this.#call.note(part)
        this.#reader.read(part)
        if (this.#reader.isOver) break
      }
    } catch (cause) {
      return this.return().then(() => Promise.reject(cause))
    }
    const events = this.#reader.take()
    return events.length > 0 ? { done: false, value: events } : this.next()
  }

  readonly #fail = (cause: unknown): never => {
    this.#end()
    throw cause
  }

  #end(): void {
    if (!this.#hasEnded) this.#call.end()
    this.#hasEnded = true
  }
}

class AnswerReader {
  readonly answer: Answer = { blocks: [], toolCalls: [], outputChars: 0, outcome: 'aborted' }
  readonly #stop: StopMatcher
  readonly #tools: AnswerOptions['tools']
  readonly #text = new TextBuilder()
  readonly #thinking = new TextBuilder()
  #events: AgentEvent[] = []

  constructor({ stopSequences, tools }: AnswerOptions) {
    this.#tools = tools
    this.#stop = new StopMatcher(stopSequences)
  }

  get isOver(): boolean {
    return this.answer.outcome !== 'aborted'
  }

  /** Whether reading these parts takes milliseconds. */
  endsLargeText(parts: readonly CallPart[]): boolean {
    if (!this.#text.isLarge && !this.#thinking.isLarge) return false
    return parts.some(
      ({ type }) =>
        (this.#text.isLarge && type !== 'text_delta') || (this.#thinking.isLarge && type !== 'thinking_delta'),
    )
  }

  /** The events for the parts that were read since the last call. */
  take(): readonly AgentEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }

  read(part: CallPart): void {
    switch (part.type) {
      case 'text_delta':
        return this.#textDelta(part.text)
      case 'text_end':
        return this.#textEnd()
      case 'thinking_delta':
        this.#thinking.add(part.text)
        this.answer.outputChars += part.text.length
        if (part.text !== '') this.#events = added(this.#events, part)
        return
      case 'thinking_end':
        return this.#thinkingEnd(part)
      case 'tool_call':
        this.answer.toolCalls.push(knownCall(part, this.#tools))
        this.answer.outputChars += part.input.length
        return
      case 'finish':
        this.answer.outcome = part.reason === 'stop_sequence' ? 'stopped' : 'complete'
        if (part.usage) this.answer.usage = part.usage
        this.#textEnd()
        if (part.reason === 'max_tokens') this.#events.push(this.#truncation())
        return
      case 'failure':
        this.answer.outcome = 'failed'
        this.answer.failure = part.failure
        return
      case 'served_by':
        this.answer.servedBy = part.route
        return
      case 'abandoned':
        return
      case 'warning':
        this.#events.push(part)
    }
  }

  #textDelta(delta: string): void {
    const { text, isStopped } = this.#stop.push(delta)
    this.#emitDelta(text)
    if (!isStopped) return
    this.answer.outcome = 'stopped'
    // If a stop sequence has ended the turn, its tool calls are not executed.
    this.answer.toolCalls = []
    this.#textEnd()
  }

  #textEnd(): void {
    this.#emitDelta(this.#stop.flush())
    const block = { type: 'text', text: this.#text.take() } as const
    if (block.text === '') return
    this.answer.blocks.push(block)
    this.#events.push(block)
  }

  #thinkingEnd({ meta }: Extract<ModelPart, { type: 'thinking_end' }>): void {
    const block = { type: 'thinking', text: this.#thinking.take() } as const
    if (block.text === '' && !meta) return
    this.answer.blocks.push({ ...block, ...(meta && { meta }) })
    if (block.text !== '') this.#events.push(block)
  }

  /** Marks the last tool call when its input may be incomplete. */
  #truncation(): AgentEvent {
    const { toolCalls } = this.answer
    const last = toolCalls.at(-1)
    const isCut = last !== undefined && isPossiblyCut(last.input)
    if (isCut) toolCalls[toolCalls.length - 1] = { ...last, isCut }
    return {
      type: 'warning',
      code: 'output_truncated',
      message: 'the answer was cut at the output limit: raise max_output_tokens, or ask for less',
      detail: isCut ? { tool_name: last.toolName } : {},
    }
  }

  #emitDelta(text: string): void {
    if (text === '') return
    this.#text.add(text)
    this.answer.outputChars += text.length
    this.#events = added(this.#events, { type: 'text_delta', text })
  }
}
