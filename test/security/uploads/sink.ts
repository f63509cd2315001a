import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { until } from '../../support/until.ts'

/** Hundreds of megabytes go through the disk of a machine that is busy with other work. */
const ARRIVE_MS = 180_000

/** A transcription backend that counts the bytes of each request and answers when it has all of them. */
export class Sink implements AsyncDisposable {
  /** The bytes of each request that arrived completely. */
  readonly sizes: number[] = []
  /** Holds answers back while it is set. */
  gate: Promise<void> | undefined
  readonly #server: Server

  private constructor() {
    this.#server = createServer((req, res) => void this.#receive(req, res))
  }

  static async start(): Promise<Sink> {
    const sink = new Sink()
    sink.#server.listen(0, '127.0.0.1')
    await once(sink.#server, 'listening')
    return sink
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  /** Waits until so many requests have arrived completely. */
  async received(count: number): Promise<void> {
    await until(() => this.sizes.length >= count, {
      what: `${count} uploads to arrive`,
      withinMs: ARRIVE_MS,
      lastSeen: () => this.sizes,
    })
  }

  async #receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    let bytes = 0
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    await once(req, 'end').catch(() => {})
    if (!req.complete) return
    this.sizes.push(bytes)
    await this.gate
    res.writeHead(200, { 'content-type': 'application/json' }).end('{"text":"heard"}')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }
}
