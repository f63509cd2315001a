import { widthOf } from './width.ts'

const INDENT = '  '

/**
 * Wraps text between words on a terminal while it arrives in pieces of any length. The beginning of a word is shown at once; when the word
 * turns out to be too long for its line, it moves to the next one. Line ends in the text are kept.
 */
export class TextFlow {
  readonly #columns: () => number
  #column = 0
  /** The blanks before the next word, which a line that ends there does not need. */
  #blanks = ''
  /** The part of the last word that is shown, and whether the word is the first of its line. */
  #word = ''
  #isFirstWord = true

  constructor(columns: () => number) {
    this.#columns = columns
  }

  /** Whether the cursor is in the middle of a line. */
  get isOpen(): boolean {
    return this.#column > 0
  }

  /** The text that is to be written now. */
  write(text: string): string {
    let out = ''
    for (const part of text.match(/\n|[^\S\n]+|\S+/g) ?? []) {
      if (part === '\n') out += this.#newLine()
      else if (/\S/.test(part)) out += this.#extend(part)
      else {
        this.#word = ''
        this.#blanks += part.replaceAll('\t', '    ')
      }
    }
    return out
  }

  /** Ends the line. */
  end(): string {
    return this.#column > 0 ? this.#newLine() : ''
  }

  #newLine(): string {
    this.#column = 0
    this.#blanks = ''
    this.#word = ''
    this.#isFirstWord = true
    return '\n'
  }

  #extend(part: string): string {
    const before = this.#word === '' ? this.#begin() : ''
    const shown = widthOf(this.#word)
    const word = this.#word + part
    const isTooLong = this.#column + widthOf(before) + widthOf(part) > this.#columns()
    if (!isTooLong || this.#isFirstWord) {
      this.#word = word
      this.#column += widthOf(before) + widthOf(part)
      return before + part
    }
    const back = shown > 0 ? `\u001b[${shown}D\u001b[K` : ''
    const end = this.#newLine()
    this.#word = word
    this.#column = INDENT.length + widthOf(word)
    return back + end + INDENT + word
  }

  /** The white space before a new word. */
  #begin(): string {
    this.#isFirstWord = this.#column === 0
    const before = (this.#isFirstWord ? INDENT : '') + this.#blanks
    this.#blanks = ''
    return before
  }
}
