import { connect, type Socket } from 'node:net'
import { GATEWAY } from '../../scripts/bench/dialect.ts'
import { readTail } from './read-tail.ts'

/** A client that asks for a run of so many KiB, reads up to the run's id and then nothing more, unless it is told to. */
export class NeverReader {
  readonly #accepted = Promise.withResolvers<string>()
  readonly #socket: Socket

  constructor(port: number, kib: number) {
    const body = GATEWAY.body(`/pieces ${kib}`)
    const head = `POST ${GATEWAY.runPath} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n`
    this.#socket = connect(port, '127.0.0.1').setEncoding('latin1')
    this.#socket.on('error', () => {}) // Being cut off is what it is here for.
    this.#socket.once('data', (chunk: string) => {
      this.#socket.pause()
      const runId = /^x-run-id: (run_\w+)\r$/im.exec(chunk)?.[1]
      if (runId === undefined) this.#accepted.reject(new Error(`no run: ${chunk.slice(0, 200)}`))
      else this.#accepted.resolve(runId)
    })
    this.#socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`)
  }

  get runId(): Promise<string> {
    return this.#accepted.promise
  }

  /** Reads what there is after all, to the end of the stream or of the connection, and tells the last of it. */
  readOn(): Promise<string> {
    return readTail(this.#socket)
  }

  leave(): void {
    this.#socket.destroy()
  }
}
