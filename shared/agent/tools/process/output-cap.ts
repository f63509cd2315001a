/** Keeps the first and the last `partChars` UTF-16 units of a command's output; the text between them is only counted. */
export class OutputCap {
  readonly #partChars: number
  #head = ''
  #tail = ''
  #chars = 0
  #lines = 0

  constructor(partChars: number) {
    this.#partChars = partChars
  }

  get chars(): number {
    return this.#chars
  }

  get lines(): number {
    return this.#lines
  }

  add(text: string): void {
    this.#chars += text.length
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) this.#lines += 1
    const room = this.#partChars - this.#head.length
    this.#head += text.slice(0, room)
    if (text.length > room) this.#tail = (this.#tail + text.slice(room)).slice(-this.#partChars)
  }

  /** The output; a gap in it says how many characters were left out. */
  text(): string {
    const left = this.#chars - this.#head.length - this.#tail.length
    const gap = left > 0 ? `\n[… ${left} characters left out …]\n` : ''
    return `${this.#head}${gap}${this.#tail}`.toWellFormed()
  }
}
