import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type Entry, now } from './history.ts'
import type { StreamClient } from './stream-client.ts'

/** Settings that let the tools of a cluster call the server of `startEffects`. */
export const EFFECTS_ENV = { TOOL_PERMISSIONS: '{"WebFetch":"allow"}', ALLOW_PRIVATE_URLS: 'true', MAX_TURNS: '200' }

/** Starts an HTTP server outside of the cluster that WebFetch calls. It records which run called and when. */
export async function startEffects(record: (entry: Entry) => void): Promise<Effects> {
  const effects = new Effects(record)
  await effects.listen()
  return effects
}

export class Effects implements AsyncDisposable {
  readonly #record: (entry: Entry) => void
  readonly #streams = new Map<string, Pick<StreamClient, 'run'>>()
  /** A call starts when it connects: a process frozen at that moment sends its request only after it continues. */
  readonly #connectedAt = new WeakMap<Socket, number>()
  readonly #server = createServer((req, res) => {
    this.#recordCall(new URL(req.url ?? '/', 'http://effects'), this.#connectedAt.get(req.socket) ?? now())
    res.setHeader('content-type', 'text/plain').setHeader('connection', 'close').end('done')
  }).on('connection', (socket: Socket) => this.#connectedAt.set(socket, now()))
  count = 0

  constructor(record: (entry: Entry) => void) {
    this.#record = record
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  /** Inputs for WebFetch. `mark` identifies the run until its id is known. */
  inputs(mark: string, count: number): object[] {
    const { port } = this.#server.address() as AddressInfo
    return Array.from({ length: count }, (_, n) => ({ url: `http://127.0.0.1:${port}/?mark=${mark}&call=${n}` }))
  }

  /** Assigns the calls with `mark` to the run of a stream. */
  assign(mark: string, stream: Pick<StreamClient, 'run'>): void {
    this.#streams.set(mark, stream)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #recordCall({ searchParams }: URL, t: number): void {
    this.count++
    const mark = searchParams.get('mark') ?? ''
    const run = this.#streams.get(mark)?.run || mark
    const call = searchParams.get('call') ?? ''
    this.#record({ kind: 'tool', t, run, epoch: epochOf(run), call })
  }
}

/** A run's id begins with its worker's epoch. */
const epochOf = (run: string) => Number.parseInt(run.slice(4, 12), 16) || 0
