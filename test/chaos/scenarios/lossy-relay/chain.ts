const FNV_PRIME = 0x01000193
const FNV_OFFSET = 0x811c9dc5

/**
 * A text in numbered pieces, each with a hash of all pieces before it. The name determines the text, so that a reader can
 * detect every missing, duplicate, reordered or changed piece.
 */
export class Chain {
  readonly #name: string
  #hash: number
  #count = 0

  constructor(name: string) {
    this.#name = name
    this.#hash = fnv1a(FNV_OFFSET, name)
  }

  /** The number of pieces so far. */
  get count(): number {
    return this.#count
  }

  /** The next piece. */
  get piece(): string {
    return `${this.#count + 1}.${this.#hash.toString(36)} `
  }

  next(): string {
    const { piece } = this
    this.#hash = fnv1a(this.#hash, piece)
    this.#count++
    return piece
  }

  /** Whether the concatenation of all pieces so far is this text. */
  makes(text: string): boolean {
    return fnv1a(fnv1a(FNV_OFFSET, this.#name), text) === this.#hash
  }
}

/** The number in a piece. */
export const numberOf = (piece: string): number => Number.parseInt(piece, 10)

function fnv1a(hash: number, text: string): number {
  let mixed = hash
  for (let i = 0; i < text.length; i++) mixed = Math.imul(mixed ^ text.charCodeAt(i), FNV_PRIME)
  return mixed >>> 0
}
