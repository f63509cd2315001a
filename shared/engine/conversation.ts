import type { Message } from '../providers/port.ts'
import { charsOf, type Measure } from './context/size.ts'

/** What a conversation goes on from. */
export type ConversationState = {
  messages: readonly Message[]
  /** Missing: as many as `messages` holds. A compacted history holds fewer than the conversation had. */
  messageCount?: number
}

/**
 * The history that a run starts from and adds to: the user's message at once, then each turn when it is complete, so that a
 * run that fails or is cut leaves no half turn behind (D4.6).
 */
export class Conversation {
  #messages: readonly Message[]
  #messageCount: number
  #chars: number
  #measured: Measure | undefined

  constructor({ messages, messageCount = countOf(messages) }: ConversationState = { messages: [] }) {
    this.#messages = messages
    this.#messageCount = messageCount
    this.#chars = charsOf(messages)
  }

  get messages(): readonly Message[] {
    return this.#messages
  }

  /** The user and assistant messages that the history has had (D5.7): compacting it takes none away. */
  get messageCount(): number {
    return this.#messageCount
  }

  get chars(): number {
    return this.#chars
  }

  /** What the provider counted last, and how long the history was then. */
  get measured(): Measure | undefined {
    return this.#measured
  }

  append(...messages: Message[]): void {
    this.#messages = [...this.#messages, ...messages]
    this.#messageCount += countOf(messages)
    this.#chars += charsOf(messages)
  }

  /** Puts a shorter history that says the same in place of this one (D5.6). */
  compact(messages: readonly Message[]): void {
    this.#messages = messages
    this.#chars = charsOf(messages)
  }

  /** Told how many tokens the provider found in a request with the history as it is. */
  measure(tokens: number): void {
    this.#measured = { tokens, chars: this.#chars }
  }
}

const countOf = (messages: readonly Message[]): number => messages.filter(({ role }) => role !== 'tool').length
