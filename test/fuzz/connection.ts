import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Answer, readAnswer } from '../harness/answer.ts'

export type Ask = {
  bytes: Buffer
  /** How many answers to wait for. */
  count?: number
  isHead?: boolean
  /** Nothing follows: the client closes its half. */
  isLast?: boolean
  /** A stream of events that says nothing for so long has said what it has to say for now. */
  quietMs?: number
}

const QUIET_MS = 40

/** Longer than the product's own deadline for a large body. */
const PATIENCE_MS = 15_000

/** A connection on which bytes go out as they are. */
export class Connection implements Disposable {
  readonly #socket: Socket
  #bytes: Buffer = Buffer.alloc(0)
  #isReusable = true
  #wake: () => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk])
      this.#wake()
    })
    socket.on('error', () => {}) // Told by `close`.
    socket.once('close', () => this.#wake())
  }

  static async open(port: number): Promise<Connection> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    await once(socket, 'connect')
    return new Connection(socket)
  }

  /** Has everything been said and heard, so that another request may follow? */
  get isReusable(): boolean {
    return this.#isReusable && !this.#socket.destroyed && this.#bytes.length === 0
  }

  get isClosed(): boolean {
    return this.#socket.destroyed
  }

  /** Fewer answers than were asked for when the connection ends or patience does; the last may then be half of one. */
  async ask({ bytes, count = 1, isHead = false, isLast = false, quietMs = QUIET_MS }: Ask): Promise<Answer[]> {
    this.#socket.write(bytes)
    if (isLast) this.#socket.end()
    const answers: Answer[] = []
    while (answers.length < count) {
      const answer = readAnswer(this.#bytes, isHead)
      const isOver = answer?.isWhole || !(await this.#news(isStream(answer) ? quietMs : PATIENCE_MS))
      if (isOver && answer) answers.push(answer)
      if (!answer?.isWhole && isOver) break
      if (answer?.isWhole) this.#bytes = this.#bytes.subarray(answer.size)
    }
    const last = answers.at(-1)
    this.#isReusable = !isLast && last?.isWhole === true && last.headers.get('connection') !== 'close'
    return answers
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }

  /** Resolves with the next bytes or the end of the connection; `false` when it has ended already, or after `ms`. */
  async #news(ms: number): Promise<boolean> {
    if (this.#socket.destroyed) return false
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => resolve(false), ms)
    this.#wake = () => resolve(true)
    const isNews = await promise
    clearTimeout(timer)
    return isNews
  }
}

const isStream = (answer: Answer | undefined) => answer?.headers.get('content-type') === 'text/event-stream'
