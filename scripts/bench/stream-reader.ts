import type { Dialect } from './dialect.ts'

/**
 * Reads a stream of the model server's numbered tokens, `1 2 3 …`, by searching instead of parsing, to cost little. The
 * tokens contain no character that JSON escapes.
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

  /** Whether each of `count` tokens has arrived once and in order, so many times over, followed by the end of a complete stream. */
  isComplete(count: number, times = 1): boolean {
    return this.hasEnded && this.#rest === '' && this.text === numbered(count).repeat(times)
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

/** The model server's answer to `/tokens count`. */
const numbered = (count: number): string => Array.from({ length: count }, (_, i) => `${i + 1} `).join('')
