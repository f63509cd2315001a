import { jsonBytes } from '../../kernel/json.ts'
import type { Message } from '../providers/port.ts'
import { charsOf, type Measure } from './context/size.ts'
import { branchTo, headOf, lastSeqOf, relinked, withBranchReplaced, withStamps } from './messages/branches.ts'

/** The state that a conversation continues from. */
export type ConversationState = {
  /** The messages of all branches; the last one is the head. */
  messages: readonly Message[]
  /** Missing: counted from `messages`. A compacted history holds fewer messages than the conversation had. */
  messageCount?: number | undefined
}

type RunIdSource = () => string | null
/** Where the next message goes: after the message `after`; `null` begins a new branch. `client` is the id that the client has given the message. */
export type NextMessage = { after?: string | null | undefined; client?: string | undefined }
export type ConversationOptions = { onResize?: (bytes: number) => void; runId?: RunIdSource }

/**
 * The history that a run continues: the user's message is added at once, each turn when it is complete, so that a run that
 * fails or is aborted leaves no partial turn (D4.6). With stamps it is a tree of which a run sees one branch (D23.5a).
 */
export class Conversation {
  #all: readonly Message[]
  /** The messages of the branch that the next message continues. */
  #messages: readonly Message[]
  #client: string | undefined
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
    this.#all = this.#stamp(messages, messages.length, null)
    this.#messages = runId ? branchTo(this.#all, headOf(this.#all)) : this.#all
    if (this.#messages.length === this.#all.length) this.#messages = this.#all
    this.#messageCount = messageCount
    this.#chars = charsOf(this.#messages)
    this.#bytes = bytesOf(this.#all, charsOf(messages))
    this.#onResize = onResize
    onResize(this.#bytes)
  }

  get messages(): readonly Message[] {
    return this.#messages
  }

  /** The messages of all branches, in the order in which they were added. */
  get all(): readonly Message[] {
    return this.#all
  }

  /** How many user and assistant messages the conversation has had (D5.7). Compaction does not lower it. */
  get messageCount(): number {
    return this.#messageCount
  }

  /** How often the history was replaced by a shorter one. */
  get compactions(): number {
    return this.#compactions
  }

  /** Size of the branch in characters. */
  get chars(): number {
    return this.#chars
  }

  /** Size of all branches. */
  get bytes(): number {
    return this.#bytes
  }

  /** The provider's last token count, with the size of the history at that time. */
  get measured(): Measure | undefined {
    return this.#measured
  }

  /** Prepares for the next message: selects the branch that it continues, and keeps the id that its client has for it. */
  prepare({ after, client }: NextMessage): void {
    this.#client = client
    if (after === undefined || after === headOf(this.#messages)) return
    this.#messages = branchTo(this.#all, after)
    this.#chars = charsOf(this.#messages)
    this.#measured = undefined
  }

  append(...messages: Message[]): void {
    const added = this.#stamp(this.#named(messages), lastSeqOf(this.#all) + messages.length, headOf(this.#messages))
    const isOnlyBranch = this.#messages === this.#all
    this.#messages = [...this.#messages, ...added]
    this.#all = isOnlyBranch ? this.#messages : [...this.#all, ...added]
    this.#messageCount += countOf(messages)
    const chars = charsOf(messages)
    this.#chars += chars
    this.#setBytes(this.#bytes + bytesOf(added, chars))
  }

  /** Replaces the branch by a shorter one (D5.6). The messages of other branches stay. */
  compact(messages: readonly Message[]): void {
    this.#compactions++
    const shorter = relinked(this.#stamp(messages, lastSeqOf(this.#messages), null))
    const isOnlyBranch = this.#messages === this.#all
    this.#all = isOnlyBranch ? shorter : withBranchReplaced(this.#all, { branch: this.#messages, shorter })
    this.#messages = shorter
    this.#chars = charsOf(messages)
    this.#setBytes(bytesOf(this.#all, charsOf(this.#all)))
  }

  /** Records how many tokens the provider counted in a request with the current history. */
  measure(measured: Measure): void {
    this.#measured = measured
  }

  /** Notes that the server of this model has silently cut a request to `tokens`: its window holds no more. */
  noteCut({ tokens, model }: Measure): void {
    this.#cutAt = { tokens, model }
  }

  /** The window of a model, derived from cut requests. */
  cutWindowOf(model: string): number {
    return this.#cutAt?.model === model ? this.#cutAt.tokens : Number.POSITIVE_INFINITY
  }

  #stamp(messages: readonly Message[], lastSeq: number, parent: string | null): readonly Message[] {
    if (!this.#runId || messages.length === 0) return messages
    const [runId, at] = [this.#runId(), new Date().toISOString()]
    return withStamps(messages, { seq: lastSeq, runId, at, parent })
  }

  /** Gives the message of the user the id that its client has for it. */
  #named([first, ...rest]: readonly Message[]): readonly Message[] {
    const client = this.#client
    this.#client = undefined
    if (!first) return []
    return client === undefined || first.role !== 'user' ? [first, ...rest] : [{ ...first, client }, ...rest]
  }

  #setBytes(bytes: number): void {
    this.#bytes = bytes
    this.#onResize(bytes)
  }
}

const LARGE_CHARS = 64 * 1024

/** Measures the JSON, which includes fields that the model does not read, such as ids. `chars` is `charsOf(messages)`. */
function bytesOf(messages: readonly Message[], chars: number): number {
  const bytesOfOne = chars > LARGE_CHARS ? jsonBytes : (message: Message) => Buffer.byteLength(JSON.stringify(message))
  return messages.reduce((bytes, message) => bytes + bytesOfOne(message), 0)
}

const countOf = (messages: readonly Message[]): number => messages.filter(({ role }) => role !== 'tool').length
