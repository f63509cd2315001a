import type { Message } from '../providers/port.ts'

/**
 * The history that a run starts from and adds to: the user's message at once, then each turn when it is complete, so that a
 * run that fails or is cut leaves no half turn behind (D4.6).
 */
export class Conversation {
  readonly #messages: Message[] = []

  get messages(): readonly Message[] {
    return this.#messages
  }

  /** The user and assistant messages of the history (D5.7). */
  get messageCount(): number {
    return this.#messages.filter(({ role }) => role !== 'tool').length
  }

  append(...messages: Message[]): void {
    this.#messages.push(...messages)
  }
}
