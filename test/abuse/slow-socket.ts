import { connect, type Socket } from 'node:net'
import { type Answer, readAnswer } from '../harness/answer.ts'

/** The bytes of a slow client: the opening first, then the piece again and again. */
export type Trickle = { opening: string; piece: string }

const HEAD = 'GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n'

/** Requests whose headers never end. */
export const SLOW_HEADERS: readonly Trickle[] = [
  { opening: HEAD, piece: 'X-More: of it\r\n' },
  { opening: HEAD, piece: 'x' },
  { opening: 'GET /v1/health?', piece: 'a' },
  { opening: 'POST /v1/agent/run HTTP/1.1\r\nX-Pad:', piece: ' ' },
  { opening: '', piece: '' },
]

const POST = 'POST /v1/agent/run HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n'
const KIB = 'x'.repeat(1024)

/** Bodies of 1 MiB in pieces of 1 KiB, which would take 17 minutes. */
export const SLOW_BODIES: readonly Trickle[] = [
  { opening: `${POST}Content-Length: 1048576\r\n\r\n{"prompt":"`, piece: KIB },
  { opening: `${POST}Transfer-Encoding: chunked\r\n\r\n`, piece: `400\r\n${KIB}\r\n` },
]

/** A client that sends its request in small pieces until it is answered or disconnected. */
export class SlowSocket {
  readonly #socket: Socket
  readonly #piece: string
  #start = performance.now()
  readonly #received: Buffer[] = []
  readonly closed = Promise.withResolvers<void>()
  /** Time from the connection to the first byte of the answer; `undefined` before. */
  answeredMs: number | undefined

  constructor(port: number, { opening, piece }: Trickle) {
    this.#piece = piece
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.#socket.on('data', (bytes: Buffer) => {
      this.answeredMs ??= performance.now() - this.#start
      this.#received.push(bytes)
    })
    this.#socket.once('connect', () => {
      this.#start = performance.now()
    })
    this.#socket.on('error', () => {}) // `close` follows.
    this.#socket.once('close', () => this.closed.resolve())
    this.#socket.write(opening)
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  /** The answer; `undefined` when there is none or it is not HTTP. */
  get answer(): Answer | undefined {
    try {
      return readAnswer(Buffer.concat(this.#received))
    } catch {
      return undefined
    }
  }

  trickle(): void {
    if (this.answeredMs === undefined && this.#socket.writable) this.#socket.write(this.#piece)
  }

  leave(): void {
    this.#socket.destroy()
  }
}
