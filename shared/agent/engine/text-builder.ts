const PIECES_AT_ONCE = 256
/** A text above this size is large. */
const LARGE_CHARS = 64 * 1024
const GROWTH_BYTES = 256 * 1024
/** Address space for one large text, more than the bytes that a provider may send. Memory is used only for the bytes that were written. */
const MAX_BYTES = 64 * 1024 * 1024

/**
 * Joins a text from many small pieces. Adding strings with `+` would keep a rope node for each piece until the text is read,
 * which is ten times the size of the text. A large text is collected as UTF-8 outside the JavaScript heap, in memory that is freed when
 * the text is taken: the pieces of a hundred large answers would otherwise stay until the next full garbage collection.
 */
export class TextBuilder {
  #parts: string[] = []
  #pieces: string[] = []
  #chars = 0
  #large: LargeText | undefined

  /** Whether taking the text needs milliseconds. */
  get isLarge(): boolean {
    return this.#large !== undefined
  }

  add(piece: string): void {
    if (this.#large) return this.#large.add(piece)
    this.#chars += piece.length
    const count = this.#pieces.push(piece)
    if (this.#chars > LARGE_CHARS) this.#large = new LargeText(this.#takeSmall())
    else if (count >= PIECES_AT_ONCE) this.#join()
  }

  take(): string {
    const text = this.#large ? this.#large.take() : this.#takeSmall()
    this.#large = undefined
    return text
  }

  #join(): void {
    this.#parts.push(this.#pieces.join(''))
    this.#pieces = []
  }

  #takeSmall(): string {
    const text = [...this.#parts, ...this.#pieces].join('')
    this.#parts = []
    this.#pieces = []
    this.#chars = 0
    return text
  }
}

/** A surrogate without its other half becomes U+FFFD, as it does in every request to a provider. */
class LargeText {
  readonly #memory = new ArrayBuffer(0, { maxByteLength: MAX_BYTES })
  readonly #bytes = Buffer.from(this.#memory)
  #length = 0
  /** The first half of a surrogate pair at the end of the last piece. */
  #held = ''

  constructor(text: string) {
    this.add(text)
  }

  add(piece: string): void {
    const text = this.#held + piece
    this.#held = endsInsidePair(text) ? text.slice(-1) : ''
    const whole = this.#held === '' ? text : text.slice(0, -1)
    this.#makeRoom(this.#length + Buffer.byteLength(whole))
    this.#length += this.#bytes.write(whole, this.#length)
  }

  take(): string {
    this.add('')
    const text = this.#bytes.toString('utf8', 0, this.#length) + this.#held
    this.#memory.resize(0)
    return text
  }

  #makeRoom(bytes: number): void {
    if (bytes > this.#bytes.length) this.#memory.resize(Math.ceil(bytes / GROWTH_BYTES) * GROWTH_BYTES)
  }
}

function endsInsidePair(text: string): boolean {
  const last = text.charCodeAt(text.length - 1)
  return last >= 0xd800 && last <= 0xdbff
}
