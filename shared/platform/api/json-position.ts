import { countChars } from '../../kernel/text.ts'

/** Where a text stops being JSON, for a person: lines and columns count from 1, columns in code points (D2.6). */
export function describeSyntaxError(text: string): string {
  const at = syntaxErrorAt(text)
  const before = text.slice(0, at).split('\n')
  const place = `line ${before.length}, column ${countChars(before.at(-1) ?? '') + 1}`
  return at === text.length ? `it ends too early, at ${place}` : `look at ${place}`
}

/**
 * The index of the first character that no JSON text has there; the length of a text that ends too early. Takes time linear in the
 * length. The text is not JSON, and not nested deeper than `findFlaw` allows.
 */
export function syntaxErrorAt(text: string): number {
  const reader = new JsonReader(text)
  if (reader.readValue()) reader.skipBlanks()
  return reader.at
}

const WORDS = ['true', 'false', 'null']

/** Reads a text as far as it is JSON. Each method returns whether it got to the end of what it reads; `at` is behind the last good character. */
class JsonReader {
  at = 0
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  readValue(): boolean {
    this.skipBlanks()
    const char = this.#text[this.at]
    if (char === '{') return this.#readList('}', () => this.#readMember())
    if (char === '[') return this.#readList(']', () => this.readValue())
    if (char === '"') return this.#readString()
    const word = WORDS.find((each) => each[0] === char)
    return word === undefined ? this.#readNumber() : word.split('').every((each) => this.#take(each))
  }

  skipBlanks(): void {
    while (this.#take(' ') || this.#take('\n') || this.#take('\r') || this.#take('\t'));
  }

  #readList(end: string, readItem: () => boolean): boolean {
    this.at++
    this.skipBlanks()
    if (this.#take(end)) return true
    do {
      if (!readItem()) return false
      this.skipBlanks()
    } while (this.#take(','))
    return this.#take(end)
  }

  #readMember(): boolean {
    this.skipBlanks()
    if (this.#text[this.at] !== '"' || !this.#readString()) return false
    this.skipBlanks()
    return this.#take(':') && this.readValue()
  }

  #readString(): boolean {
    this.at++
    for (;;) {
      const code = this.#text.charCodeAt(this.at)
      if (!(code >= 0x20)) return false // A control character, or the end.
      this.at++
      if (code === 0x22) return true
      if (code === 0x5c && !this.#readEscape()) return false
    }
  }

  #readEscape(): boolean {
    if (!this.#takeOneOf(/["\\/bfnrtu]/)) return false
    if (this.#text[this.at - 1] !== 'u') return true
    return [1, 2, 3, 4].every(() => this.#takeOneOf(/[\da-f]/i))
  }

  #readNumber(): boolean {
    this.#take('-')
    if (!this.#take('0') && !this.#readDigits()) return false
    if (this.#take('.') && !this.#readDigits()) return false
    if (!this.#takeOneOf(/e/i)) return true
    this.#takeOneOf(/[+-]/)
    return this.#readDigits()
  }

  #readDigits(): boolean {
    const from = this.at
    while (this.#takeOneOf(/\d/));
    return this.at > from
  }

  #take(char: string): boolean {
    const isNext = this.#text[this.at] === char
    if (isNext) this.at++
    return isNext
  }

  #takeOneOf(chars: RegExp): boolean {
    const isNext = chars.test(this.#text[this.at] ?? '')
    if (isNext) this.at++
    return isNext
  }
}
