const FNV_PRIME = 0x01000193
const FNV_OFFSET = 0x811c9dc5

/**
 * A text in numbered pieces, each of which carries the hash of all before it: whoever has the name can make it, and whoever
 * reads it sees what is missing, doubled, out of its place or changed.
 */
export class Chain {
  readonly #name: string
  #hash: number
  #count = 0

  constructor(name: string) {
    this.#name = name
    this.#hash = fnv1a(FNV_OFFSET, name)
  }

  /** Pieces so far. */
  get count(): number {
    return this.#count
  }

  /** The piece that comes next. */
  get piece(): string {
    return `${this.#count + 1}.${this.#hash.toString(36)} `
  }

  next(): string {
    const { piece } = this
    this.#hash = fnv1a(this.#hash, piece)
    this.#count++
    return piece
  }

  /** Are all pieces so far, one behind the other, this text? */
  makes(text: string): boolean {
    return fnv1a(fnv1a(FNV_OFFSET, this.#name), text) === this.#hash
  }
}

/** The number that a piece says it has. */
export const numberOf = (piece: string): number => Number.parseInt(piece, 10)

function fnv1a(hash: number, text: string): number {
  let mixed = hash
  for (let i = 0; i < text.length; i++) mixed = Math.imul(mixed ^ text.charCodeAt(i), FNV_PRIME)
  return mixed >>> 0
}
