import type { Dialect } from './dialect.ts'

/**
 * Reads one stream of the model server's numbered tokens, `1 2 3 …`, as cheaply as can be: by searching, without parsing.
 * The tokens hold no character that JSON would escape.
 */
export class StreamReader {
  readonly #dialect: Dialect
  #rest = ''
  text = ''
  events = 0
  hasEnded = false

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  read(chunk: string): void {
    const read = this.#rest + chunk
    const whole = read.lastIndexOf('\n\n') + 2
    if (whole === 1) {
      this.#rest = read
      return
    }
    this.#rest = read.slice(whole)
    this.#readFrames(read.slice(0, whole))
  }

  /** Has every one of `count` tokens arrived, each once, in order, and the stream's proper end behind them? */
  isComplete(count: number): boolean {
    return this.hasEnded && this.#rest === '' && this.text === numbered(count)
  }

  #readFrames(frames: string): void {
    const { beforeText, end } = this.#dialect
    let at = frames.indexOf(beforeText)
    while (at >= 0) {
      const from = at + beforeText.length
      const to = frames.indexOf('"', from)
      this.text += frames.slice(from, to)
      this.events += 1
      at = frames.indexOf(beforeText, to)
    }
    this.hasEnded ||= frames.includes(end)
  }
}

/** What the model server says for `/tokens count`. */
const numbered = (count: number): string => Array.from({ length: count }, (_, i) => `${i + 1} `).join('')
