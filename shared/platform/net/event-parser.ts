import { StringDecoder } from 'node:string_decoder'

const LF = 10
const CR = 13
const SPACE = 32
const BOM = '\uFEFF'

/** Parses bytes that arrive in chunks of any size, and reports each complete unit. */
export interface StreamParser {
  push(chunk: Uint8Array): void
  /** Reports the rest. */
  end(): void
}

/** Reports each line that is not blank. */
export class LineParser implements StreamParser {
  readonly #onLine: (line: string) => void
  readonly #decoder = new StringDecoder('utf8')
  #rest = ''
  #isAtStart = true

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine
  }

  push(chunk: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.write(chunk)).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) this.#report(line)
  }

  end(): void {
    const rest = this.#rest + this.#decoder.end()
    this.#rest = ''
    this.#report(rest)
  }

  #report(line: string): void {
    const text = this.#isAtStart && line.startsWith(BOM) ? line.slice(1) : line
    this.#isAtStart = false
    if (text.trim() !== '') this.#onLine(text)
  }
}

/** Decodes text that ends with a line end: nothing of it waits for the next chunk, so all streams share this decoder. */
const wholeLines = new StringDecoder('utf8')

/**
 * Parses the bytes of an event stream, in chunks of any size, and reports the data of each event. Other fields are ignored. A line
 * ends with CR, LF or both, and the stream may begin with a byte order mark (WHATWG "server-sent events").
 */
export class EventParser implements StreamParser {
  readonly #onData: (data: string) => void
  /** Created with the first chunk that ends within a line. */
  #decoder: StringDecoder | undefined
  /** The text after the last line end. */
  #rest = ''
  #data: string | undefined
  #isAtStart = true
  /** Whether the parsed text ends with CR: a following LF belongs to it. */
  #endsInCr = false

  constructor(onData: (data: string) => void) {
    this.#onData = onData
  }

  push(chunk: Uint8Array): void {
    const cut = Math.max(chunk.lastIndexOf(LF), chunk.lastIndexOf(CR)) + 1
    const isWhole = cut === chunk.length // As most chunks are.
    const decoder = this.#decoderFor(isWhole)
    if (cut > 0) this.#parse(this.#rest + decoder.write(isWhole ? chunk : chunk.subarray(0, cut)))
    // Decoded separately from the text above: a slice of that text would keep all of it in memory.
    const rest = isWhole ? '' : decoder.write(chunk.subarray(cut))
    this.#rest = cut > 0 ? rest : this.#rest + rest
  }

  /** Reads the rest: some servers end without the blank line, or without a line end. */
  end(): void {
    const rest = this.#rest + (this.#decoder?.end() ?? '')
    this.#rest = ''
    if (rest !== '') this.#parse(`${rest}\n`)
    this.#endEvent()
  }

  #decoderFor(isWhole: boolean): StringDecoder {
    if (!isWhole) this.#decoder ??= new StringDecoder('utf8')
    return this.#decoder ?? wholeLines
  }

  #parse(whole: string): void {
    const text = this.#withLineFeeds(whole)
    let start = this.#isAtStart && text.startsWith(BOM) ? 1 : 0
    this.#isAtStart = false
    for (let end = text.indexOf('\n', start); end >= 0; end = text.indexOf('\n', start)) {
      this.#parseField(text, start, end)
      start = end + 1
    }
  }

  #withLineFeeds(whole: string): string {
    const text = this.#endsInCr && whole.charCodeAt(0) === LF ? whole.slice(1) : whole
    this.#endsInCr = whole.charCodeAt(whole.length - 1) === CR
    return text.includes('\r') ? text.replaceAll(/\r\n?/g, '\n') : text
  }

  #parseField(text: string, start: number, end: number): void {
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
