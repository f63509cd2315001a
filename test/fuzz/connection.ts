import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Answer, readAnswer } from '../harness/answer.ts'

export type Ask = {
  bytes: Buffer
  /** How many answers to wait for. */
  count?: number
  isHead?: boolean
  /** Nothing follows: the client half-closes the connection. */
  isLast?: boolean
  /** An event stream without new bytes for this long counts as answered. */
  quietMs?: number
}

const QUIET_MS = 40

/** Much longer than the product takes for its largest body, also on a busy machine: only an answer that never comes needs so long. */
const PATIENCE_MS = 60_000

/** A connection that sends bytes unchanged and parses the answers. */
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
    socket.on('error', () => {}) // `close` follows.
    socket.once('close', () => this.#wake())
  }

  static async open(port: number): Promise<Connection> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    await once(socket, 'connect')
    return new Connection(socket)
  }

  /** Whether every answer was complete, so that another request may follow on this connection. */
  get isReusable(): boolean {
    return this.#isReusable && !this.#socket.destroyed && this.#bytes.length === 0
  }

  get isClosed(): boolean {
    return this.#socket.destroyed
  }

  /** Sends bytes and resolves with up to `count` answers: fewer when the connection ends or times out; the last may then be incomplete. */
  async ask({ bytes, count = 1, isHead = false, isLast = false, quietMs = QUIET_MS }: Ask): Promise<Answer[]> {
    this.#socket.write(bytes)
    if (isLast) this.#socket.end()
    const answers: Answer[] = []
    while (answers.length < count) {
      const answer = readAnswer(this.#bytes, isHead)
      const isOver = answer?.isWhole || !(await this.#received(isStream(answer) ? quietMs : PATIENCE_MS))
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

  /** Waits for the next bytes or the end of the connection. `false` when it has ended already, or after `ms`. */
  async #received(ms: number): Promise<boolean> {
    if (this.#socket.destroyed) return false
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => resolve(false), ms)
    this.#wake = () => resolve(true)
    const isReceived = await promise
    clearTimeout(timer)
    return isReceived
  }
}

const isStream = (answer: Answer | undefined) => answer?.headers.get('content-type') === 'text/event-stream'
