/** A part of a JSON text: from its first character to behind its last. */
export type Span = { from: number; to: number }

/** The place of a value, or of the nearest one that holds it. */
export function placeOf(text: string, pointer: string): Span | undefined {
  const places = placesIn(text)
  for (let at = pointer; ; at = at.slice(0, at.lastIndexOf('/'))) {
    const found = places.get(at)
    if (found || at === '') return found
  }
}

/**
 * Where the values of a JSON text stand, by their JSON pointers. Stops at the first mistake: the values before it have places.
 */
function placesIn(text: string): ReadonlyMap<string, Span> {
  const places = new Map<string, Span>()
  try {
    new Reader(text, places).value('')
  } catch {
    // The text is not JSON to its end.
  }
  return places
}

/** Where a text stops being JSON: the index of what no JSON text has there. `undefined` for JSON. */
export function mistakeIn(text: string): number | undefined {
  const reader = new Reader(text, new Map())
  try {
    reader.value('')
    return reader.isAtEnd() ? undefined : reader.at
  } catch {
    return reader.at
  }
}

/** The line of a character, counted from 1. */
export const lineAt = (text: string, index: number): number => text.slice(0, index).split('\n').length

const MOST_DEPTH = 200

class Reader {
  readonly #text: string
  readonly #places: Map<string, Span>
  #at = 0
  #depth = 0

  constructor(text: string, places: Map<string, Span>) {
    this.#text = text
    this.#places = places
  }

  get at(): number {
    return this.#at
  }

  isAtEnd(): boolean {
    this.#skipBlanks()
    return this.#at === this.#text.length
  }

  value(pointer: string): void {
    this.#skipBlanks()
    const from = this.#at
    const first = this.#text[from]
    if (++this.#depth > MOST_DEPTH) throw new RangeError('nested too deeply')
    if (first === '{') this.#members(pointer)
    else if (first === '[') this.#items(pointer)
    else this.#take(first === '"' ? STRING : LITERAL)
    this.#depth--
    this.#places.set(pointer, { from, to: this.#at })
  }

  #members(pointer: string): void {
    this.#each('}', () => {
      const name = JSON.parse(this.#take(STRING)) as string
      this.#expect(':')
      this.value(`${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`)
    })
  }

  #items(pointer: string): void {
    let i = 0
    this.#each(']', () => this.value(`${pointer}/${i++}`))
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
