import { StringDecoder } from 'node:string_decoder'

const LF = 10
const CR = 13
const SPACE = 32

/** Cuts the bytes of an event stream, however they are cut into chunks, into the data of its events. Nothing else of an event is of use here. */
export class EventLines {
  readonly #onData: (data: string) => void
  readonly #decoder = new StringDecoder('utf8')
  /** The beginning of a line whose end is still to come. */
  #rest = ''
  #data: string | undefined

  constructor(onData: (data: string) => void) {
    this.#onData = onData
  }

  push(chunk: Uint8Array): void {
    const cut = chunk.lastIndexOf(LF) + 1
    if (cut > 0) this.#lines(this.#rest + this.#decoder.write(chunk.subarray(0, cut)))
    // Decoded by itself: as a piece of the text above it would keep all of that in memory.
    const rest = this.#decoder.write(chunk.subarray(cut))
    this.#rest = cut > 0 ? rest : this.#rest + rest
  }

  #lines(text: string): void {
    let start = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      this.#line(text, start, end)
      start = end + 1
    }
  }

  #line(text: string, start: number, lineFeed: number): void {
    const end = text.charCodeAt(lineFeed - 1) === CR ? lineFeed - 1 : lineFeed
    if (end <= start) return this.#end()
    if (!text.startsWith('data:', start)) return
    const data = text.slice(text.charCodeAt(start + 5) === SPACE ? start + 6 : start + 5, end)
    this.#data = this.#data === undefined ? data : `${this.#data}\n${data}`
  }

  #end(): void {
    const data = this.#data
    this.#data = undefined
    if (data !== undefined) this.#onData(data)
  }
}
