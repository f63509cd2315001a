import { jsonBytes } from '../../kernel/json.ts'
import type { Message } from '../providers/port.ts'
import { charsOf, type Measure } from './context/size.ts'
import { lastSeqOf, withStamps } from './messages/stamps.ts'

/** The state that a conversation continues from. */
export type ConversationState = {
  messages: readonly Message[]
  /** Missing: counted from `messages`. A compacted history holds fewer messages than the conversation had. */
  messageCount?: number | undefined
}

type RunIdSource = () => string | null
export type ConversationOptions = { onResize?: (bytes: number) => void; runId?: RunIdSource }

/**
 * The history that a run continues: the user's message is added at once, each turn when it is complete, so that a run that
 * fails or is aborted leaves no partial turn (D4.6).
 */
export class Conversation {
  #messages: readonly Message[]
  #messageCount: number
  readonly #onResize: (bytes: number) => void
  readonly #runId: RunIdSource | undefined
  #compactions = 0
  #chars: number
  #bytes: number
  #measured: Measure | undefined
  #cutAt: { tokens: number; model: string } | undefined

  /**
   * `onResize` is called with the size of the history in bytes, now and whenever it has changed. With `runId`, which names the run that
   * adds messages, each message gets a stamp.
   */
  constructor(
    { messages, messageCount = countOf(messages) }: ConversationState = { messages: [] },
    { onResize = () => {}, runId }: ConversationOptions = {},
  ) {
    this.#runId = runId
    this.#messages = this.#stamp(messages, messages.length)
    this.#messageCount = messageCount
    this.#chars = charsOf(messages)
    this.#bytes = bytesOf(this.#messages, this.#chars)
    this.#onResize = onResize
    onResize(this.#bytes)
  }

  get messages(): readonly Message[] {
    return this.#messages
  }

  /** How many user and assistant messages the conversation has had (D5.7). Compaction does not lower it. */
  get messageCount(): number {
    return this.#messageCount
  }

  /** How often the history was replaced by a shorter one. */
  get compactions(): number {
    return this.#compactions
  }

  /** Size of the history in characters. */
  get chars(): number {
    return this.#chars
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The provider's last token count, and the size of the history at that time. */
  get measured(): Measure | undefined {
    return this.#measured
  }

  append(...messages: Message[]): void {
    const added = this.#stamp(messages, lastSeqOf(this.#messages) + messages.length)
    this.#messages = [...this.#messages, ...added]
    this.#messageCount += countOf(messages)
    const chars = charsOf(messages)
    this.#chars += chars
    this.#setBytes(this.#bytes + bytesOf(added, chars))
  }

  /** Replaces the history by a shorter one (D5.6). */
  compact(messages: readonly Message[]): void {
    this.#compactions++
    this.#messages = this.#stamp(messages, lastSeqOf(this.#messages))
    this.#chars = charsOf(messages)
    this.#setBytes(bytesOf(this.#messages, this.#chars))
  }

  /** Records how many tokens the provider counted in a request with the current history. */
  measure(measured: Measure): void {
    this.#measured = measured
  }

  /** Notes that the server of this model has cut a request to `tokens` without saying so: no more fit into its window. */
  noteCut({ tokens, model }: Measure): void {
    this.#cutAt = { tokens, model }
  }

  /** The window of a model as its cuts have shown it. */
  cutWindowOf(model: string): number {
    return this.#cutAt?.model === model ? this.#cutAt.tokens : Number.POSITIVE_INFINITY
  }

  #stamp(messages: readonly Message[], lastSeq: number): readonly Message[] {
    if (!this.#runId || messages.length === 0) return messages
    return withStamps(messages, { seq: lastSeq, runId: this.#runId(), at: new Date().toISOString() })
  }

  #setBytes(bytes: number): void {
    this.#bytes = bytes
    this.#onResize(bytes)
  }
}

const LARGE_CHARS = 64 * 1024

/** Counts as JSON, which includes what the model does not read, such as ids. `chars` is `charsOf(messages)`. */
function bytesOf(messages: readonly Message[], chars: number): number {
  const bytesOfOne = chars > LARGE_CHARS ? jsonBytes : (message: Message) => Buffer.byteLength(JSON.stringify(message))
  return messages.reduce((bytes, message) => bytes + bytesOfOne(message), 0)
}

const countOf = (messages: readonly Message[]): number => messages.filter(({ role }) => role !== 'tool').length
