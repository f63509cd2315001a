import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Target } from './client.ts'

/** A client that asks for a run of many tokens and leaves what comes in the network. */
export class NeverReader {
  readonly #socket: Socket

  constructor({ port, dialect }: Target, tokens: number) {
    const body = dialect.body(`/tokens ${tokens}`)
    const head = [
      `POST ${dialect.runPath} HTTP/1.1`,
      'host: 127.0.0.1',
      'content-type: application/json',
      `content-length: ${body.length}`,
    ]
    this.#socket = connect(port, '127.0.0.1').pause()
    this.#socket.on('error', () => {})
    this.#socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  }

  /** Reads a first piece after all, and leaves: was it a run that was not read, and not a refusal? */
  async expectAccepted(signal: AbortSignal): Promise<void> {
    const [chunk] = await once(this.#socket.setEncoding('latin1').resume(), 'data', { signal })
    this.#socket.destroy()
    if (!String(chunk).startsWith('HTTP/1.1 200'))
      throw new Error(`the run was refused: ${String(chunk).slice(0, 100)}`)
  }
}
