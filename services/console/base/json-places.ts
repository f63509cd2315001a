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
    while (this.#text[this.#at] !== end) {
      read()
      this.#skipBlanks()
      if (this.#text[this.#at] === ',') this.#at++
      else if (this.#text[this.#at] !== end) throw new SyntaxError('a comma is missing')
      this.#skipBlanks()
    }
    this.#at++
  }

  #expect(character: string): void {
    this.#skipBlanks()
    if (this.#text[this.#at++] !== character) throw new SyntaxError(`${character} is missing`)
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

const STRING = /"(?:[^"\\]|\\.)*"/y
const LITERAL = /[^\s,\]}]+/y
const BLANKS = /\s*/y
