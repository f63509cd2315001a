const MAX_CHARS = 64 * 1024

/** Keeps the last 64 Ki characters of a process's output. */
export class Tail {
  #chunks: string[] = []
  #length = 0

  add(text: string): void {
    this.#chunks.push(text)
    this.#length += text.length
    if (this.#length < 2 * MAX_CHARS) return
    this.#chunks = [this.text]
    this.#length = MAX_CHARS
  }

  get text(): string {
    return this.#chunks.join('').slice(-MAX_CHARS)
  }

  /** Matches complete lines only, since an incomplete line may contain half a port number. */
  match(pattern: RegExp): RegExpExecArray | null {
    const { text } = this
    return pattern.exec(text.slice(0, text.lastIndexOf('\n') + 1))
  }
}
