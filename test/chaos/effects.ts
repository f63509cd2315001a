import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type Entry, now } from './history.ts'
import type { StreamClient } from './stream-client.ts'

/** The settings of a world whose tools act on `startEffects`. */
export const EFFECTS_ENV = { TOOL_PERMISSIONS: '{"WebFetch":"allow"}', ALLOW_PRIVATE_URLS: 'true', MAX_TURNS: '200' }

/** Something outside of the cluster that tools act on (WebFetch does): it logs who acted and when. */
export async function startEffects(record: (entry: Entry) => void): Promise<Effects> {
  const effects = new Effects(record)
  await effects.listen()
  return effects
}

export class Effects implements AsyncDisposable {
  readonly #record: (entry: Entry) => void
  readonly #streams = new Map<string, StreamClient>()
  /** A tool has begun to act when it connects: one that is frozen right then says what it wants when it is thawed. */
  readonly #connectedAt = new WeakMap<Socket, number>()
  readonly #server = createServer((req, res) => {
    this.#act(new URL(req.url ?? '/', 'http://effects'), this.#connectedAt.get(req.socket) ?? now())
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

  /** Inputs for WebFetch, of a run that is called `mark` until its id is known. */
  inputs(mark: string, count: number): object[] {
    const { port } = this.#server.address() as AddressInfo
    return Array.from({ length: count }, (_, n) => ({ url: `http://127.0.0.1:${port}/?mark=${mark}&call=${n}` }))
  }

  /** Whose acts those of `mark` are. */
  belong(mark: string, stream: StreamClient): void {
    this.#streams.set(mark, stream)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #act({ searchParams }: URL, t: number): void {
    this.count++
    const mark = searchParams.get('mark') ?? ''
    const run = this.#streams.get(mark)?.run || mark
    const call = searchParams.get('call') ?? ''
    this.#record({ kind: 'tool', t, run, epoch: epochOf(run), call })
  }
}

/** A run's id begins with its worker's epoch. */
const epochOf = (run: string) => Number.parseInt(run.slice(4, 12), 16) || 0
