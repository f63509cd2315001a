import { StringDecoder } from 'node:string_decoder'

const LF = 10
const CR = 13
const SPACE = 32

/** Bytes that arrive in chunks of any size, of which each whole unit is reported. */
export interface StreamParser {
  push(chunk: Uint8Array): void
  /** Reports what is left. */
  end(): void
}

/** Reports each line that is not blank. */
export class LineParser implements StreamParser {
  readonly #onLine: (line: string) => void
  readonly #decoder = new StringDecoder('utf8')
  #rest = ''

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine
  }

  push(chunk: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.write(chunk)).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) if (line.trim() !== '') this.#onLine(line)
  }

  end(): void {
    const rest = this.#rest + this.#decoder.end()
    this.#rest = ''
    if (rest.trim() !== '') this.#onLine(rest)
  }
}

/** Parses the bytes of an event stream, in chunks of any size, and reports the data of each event. Other fields are ignored. */
export class EventParser implements StreamParser {
  readonly #onData: (data: string) => void
  readonly #decoder = new StringDecoder('utf8')
  /** The text after the last line feed. */
  #rest = ''
  #data: string | undefined

  constructor(onData: (data: string) => void) {
    this.#onData = onData
  }

  push(chunk: Uint8Array): void {
    const cut = chunk.lastIndexOf(LF) + 1
    if (cut > 0) this.#parse(this.#rest + this.#decoder.write(chunk.subarray(0, cut)))
    // Decoded apart from the text above: a slice of that text would keep all of it in memory.
    const rest = this.#decoder.write(chunk.subarray(cut))
    this.#rest = cut > 0 ? rest : this.#rest + rest
  }

  /** Reads what is left: some servers end without the blank line, or without a line feed. */
  end(): void {
    const rest = this.#rest + this.#decoder.end()
    this.#rest = ''
    if (rest !== '') this.#parse(`${rest}\n`)
    this.#endEvent()
  }

  #parse(text: string): void {
    let start = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      this.#parseField(text, start, end)
      start = end + 1
    }
  }

  #parseField(text: string, start: number, lineFeed: number): void {
    const end = text.charCodeAt(lineFeed - 1) === CR ? lineFeed - 1 : lineFeed
    if (end <= start) return this.#endEvent()
    if (!text.startsWith('data:', start)) return
    const data = text.slice(text.charCodeAt(start + 5) === SPACE ? start + 6 : start + 5, end)
    this.#data = this.#data === undefined ? data : `${this.#data}\n${data}`
  }

  #endEvent(): void {
    const data = this.#data
    this.#data = undefined
    if (data !== undefined) this.#onData(data)
  }
}
