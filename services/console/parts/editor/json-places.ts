/** A part of a JSON text: from its first character to behind its last. */
export type Span = { from: number; to: number }

/**
 * The place of a value by its JSON pointer, or of the nearest one that holds it. Reads to the first mistake: the values before it have
 * places.
 */
export function placeOf(text: string, pointer: string): Span | undefined {
  const reader = new Reader(text, pointer.split('/').slice(1).map(unescaped))
  try {
    reader.value(0)
  } catch {
    // The text is not JSON to its end.
  }
  return reader.found?.span
}

const unescaped = (part: string) => part.replaceAll('~1', '/').replaceAll('~0', '~')

/** Where a text stops being JSON: the index of what no JSON text has there. `undefined` for JSON. */
export function mistakeIn(text: string): number | undefined {
  const reader = new Reader(text, [])
  try {
    reader.value(0)
    return reader.isAtEnd() ? undefined : reader.at
  } catch {
    return reader.at
  }
}

/** The line of a character, counted from 1. */
export const lineAt = (text: string, index: number): number => text.slice(0, index).split('\n').length

const MOST_DEPTH = 200

/** How many names of the path lead to a value that contains the wanted one. */
type Level = number | undefined

class Reader {
  readonly #text: string
  readonly #wanted: readonly string[]
  found: { level: number; span: Span } | undefined
  #at = 0
  #depth = 0

  /** `wanted`: the names that lead to the value whose place is looked for. */
  constructor(text: string, wanted: readonly string[]) {
    this.#text = text
    this.#wanted = wanted
  }

  get at(): number {
    return this.#at
  }

  isAtEnd(): boolean {
    this.#skipBlanks()
    return this.#at === this.#text.length
  }

  value(level: Level): void {
    this.#skipBlanks()
    const from = this.#at
    const first = this.#text[from]
    if (++this.#depth > MOST_DEPTH) throw new RangeError('nested too deeply')
    if (first === '{') this.#members(level)
    else if (first === '[') this.#items(level)
    else this.#take(first === '"' ? STRING : LITERAL)
    this.#depth--
    if (level !== undefined && level >= (this.found?.level ?? 0)) this.found = { level, span: { from, to: this.#at } }
  }

  #members(level: Level): void {
    this.#each('}', () => {
      const name = JSON.parse(this.#take(STRING)) as string
      this.#expect(':')
      this.value(this.#below(level, name))
    })
  }

  #items(level: Level): void {
    let i = 0
    this.#each(']', () => this.value(this.#below(level, `${i++}`)))
  }

  #below(level: Level, name: string): Level {
    return level !== undefined && this.#wanted[level] === name ? level + 1 : undefined
  }

  #each(end: string, read: () => void): void {
    this.#at++
    this.#skipBlanks()
    if (this.#text[this.#at] !== end)
      do {
        this.#skipBlanks()
        read()
        this.#skipBlanks()
      } while (this.#isNext(','))
    this.#expect(end)
  }

  #isNext(character: string): boolean {
    const isNext = this.#text[this.#at] === character
    if (isNext) this.#at++
    return isNext
  }

  #expect(character: string): void {
    this.#skipBlanks()
    if (!this.#isNext(character)) throw new SyntaxError(`${character} is missing`)
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const [found] = pattern.exec(this.#text) ?? []
    if (found === undefined) throw new SyntaxError('this is no value')
    this.#at += found.length
    return found
  }

  #skipBlanks(): void {
    BLANKS.lastIndex = this.#at
    this.#at += BLANKS.exec(this.#text)?.[0].length ?? 0
  }
}

// oxlint-disable-next-line no-control-regex -- JSON allows none in a string.
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y
const LITERAL = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const BLANKS = /[ \t\n\r]*/y
