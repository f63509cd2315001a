import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** A POST that starts a run. */
export type RunRequest = { port: number; path: string; body: string }

const TRIES = 5
const RETRY_MS = 1_000
const IDLE_MS = 20_000
const TAIL_BYTES = 2_000
const LAST_CHUNK = Buffer.from('\r\n0\r\n\r\n')

/**
 * A client that starts a run, reads the first piece of the answer, which holds the headers, and leaves the rest in the
 * network until `readOn`.
 */
export class NeverReader {
  readonly #socket: Socket
  readonly #head: Promise<string>

  constructor({ port, path, body }: RunRequest) {
    this.#socket = connect(port, '127.0.0.1')
    this.#socket.on('error', () => {}) // The server resets the connection of a slow reader; `close` reports it.
    this.#head = this.#readHead()
    this.#head.catch(() => {}) // `runId` reports it.
    const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n`
    this.#socket.write(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  }

  /** Opens a reader whose run has started. Sends the request again while the server answers 503: a busy worker may do so. */
  static async open(request: RunRequest): Promise<NeverReader> {
    for (let left = TRIES; ; left--) {
      const reader = new NeverReader(request)
      if (left === 1 || !(await reader.#head).startsWith('HTTP/1.1 503')) {
        await reader.runId
        return reader
      }
      reader.leave()
      await sleep(RETRY_MS)
    }
  }

  /** Resolves when the run has started. Rejects when it was refused or the connection closed. */
  get runId(): Promise<string> {
    return this.#head.then((head) => {
      const id = /^x-run-id: (run_\w+)\r$/im.exec(head)?.[1]
      if (id !== undefined) return id
      throw new Error(`the run was refused: ${head.slice(0, 200)}`)
    })
  }

  /** Reads the rest, to the end of the stream or of the connection, and resolves with the last 2,000 bytes of it. */
  async readOn(): Promise<string> {
    let tail = Buffer.alloc(0)
    this.#socket.on('data', (chunk: Buffer) => {
      tail = Buffer.concat([tail, chunk.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES)
      if (tail.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK)) this.leave()
    })
    const closed = once(this.#socket, 'close')
    this.#socket.setTimeout(IDLE_MS, () => this.leave()).resume()
    if (!this.#socket.closed) await closed
    return tail.toString('latin1')
  }

  leave(): void {
    this.#socket.destroy()
  }

  async #readHead(): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    this.#socket.once('close', () => reject(new Error('the connection closed before an answer')))
    this.#socket.once('data', (chunk: Buffer) => {
      this.#socket.pause()
      resolve(chunk.toString('latin1'))
    })
    return promise
  }
}
