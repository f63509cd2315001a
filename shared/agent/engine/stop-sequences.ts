/** The text that may be shown now, and whether a stop sequence has ended the answer. */
export type StopStep = { text: string; isStopped: boolean }

/**
 * Finds stop sequences in text that arrives in pieces (D4.11). It holds back the end of the text as long as that may still
 * become a stop sequence, so that no part of a stop sequence is ever shown.
 */
export class StopMatcher {
  readonly #sequences: readonly string[]
  readonly #longest: number
  #held = ''

  constructor(sequences: readonly string[]) {
    this.#sequences = sequences
    this.#longest = Math.max(0, ...sequences.map((sequence) => sequence.length))
  }

  push(piece: string): StopStep {
    if (this.#longest === 0) return { text: piece, isStopped: false }
    const text = this.#held + piece
    const stopAt = this.#firstMatch(text)
    if (stopAt >= 0) {
      this.#held = ''
      return { text: text.slice(0, stopAt), isStopped: true }
    }
    const shown = text.length - this.#partialMatchLength(text)
    this.#held = text.slice(shown)
    return { text: text.slice(0, shown), isStopped: false }
  }

  /** Call at the end of a text block: returns the text that was held back, because it cannot become a stop sequence any more. */
  flush(): string {
    const text = this.#held
    this.#held = ''
    return text
  }

  #firstMatch(text: string): number {
    let first = -1
    for (const sequence of this.#sequences) {
      const at = text.indexOf(sequence)
      if (at >= 0 && (first < 0 || at < first)) first = at
    }
    return first
  }

  /** Length of the longest end of `text` that is the beginning of a stop sequence. */
  #partialMatchLength(text: string): number {
    for (let length = Math.min(this.#longest - 1, text.length); length > 0; length--) {
      const tail = text.slice(-length)
      if (this.#sequences.some((sequence) => sequence.startsWith(tail))) return length
    }
    return 0
  }
}
