const LF = 10
/** The id of a message is within this many bytes of its beginning or its end. */
const END_BYTES = 256

type Listener = {
  onLine: (line: string) => void
  /** Gets the two ends of a line that is longer than the limit. The rest of the line is dropped as it arrives. */
  onTooLong: (start: string, end: string) => void
}

/** Cuts the output of a server into lines, in memory that does not grow with a line above the limit. */
export class MessageLines {
  readonly #maxBytes: number
  readonly #listener: Listener
  #chunks: Buffer[] = []
  #bytes = 0
  #start = ''
  #end = Buffer.alloc(0)

  constructor(maxBytes: number, listener: Listener) {
    this.#maxBytes = maxBytes
    this.#listener = listener
  }

  get isTooLong(): boolean {
    return this.#bytes > this.#maxBytes
  }

  push(chunk: Buffer): void {
    let start = 0
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, start)) {
      this.#add(chunk.subarray(start, at))
      this.#report()
      start = at + 1
    }
    this.#add(chunk.subarray(start))
  }

  #add(part: Buffer): void {
    const wasTooLong = this.isTooLong
    this.#bytes += part.length
    if (!this.isTooLong) {
      if (part.length > 0) this.#chunks.push(part)
      return
    }
    const kept = wasTooLong ? this.#end : Buffer.concat(this.#chunks)
    if (!wasTooLong) this.#start = Buffer.concat([kept.subarray(0, END_BYTES), part]).toString('utf8', 0, END_BYTES)
    this.#end = Buffer.concat([kept.subarray(-END_BYTES), part.subarray(-END_BYTES)]).subarray(-END_BYTES)
    this.#chunks = []
  }

  #report(): void {
    const { isTooLong } = this
    const line = Buffer.concat(this.#chunks)
    this.#chunks = []
    this.#bytes = 0
    if (isTooLong) this.#listener.onTooLong(this.#start, this.#end.toString('utf8'))
    else this.#listener.onLine(line.toString('utf8'))
  }
}
