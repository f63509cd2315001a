import type { RunEvent } from '../../kernel/events.ts'

/** The answer of an agent, read from the events of its run: the texts of the last turn. */
export class LastAnswer {
  #texts: string[] = []

  note(event: RunEvent): void {
    if (event.type === 'turn_start') this.#texts = []
    if (event.type === 'text') this.#texts.push(event.text)
  }

  get texts(): readonly string[] {
    return this.#texts
  }

  /** The texts in the form that a reader gets. */
  get text(): string {
    return this.#texts.join('\n')
  }
}
