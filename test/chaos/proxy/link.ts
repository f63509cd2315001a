import { connect, type Socket } from 'node:net'
import type { Random } from '../../harness/seed.ts'
import type { PubSubMessage } from '../resp.ts'
import type { Faults } from './faults.ts'
import { MessageFilter } from './message-filter.ts'
import { Pipe } from './pipe.ts'

export type LinkDeps = {
  client: Socket
  server: { host: string; port: number }
  faults: () => Faults
  random: Random
  keep: (message: PubSubMessage) => boolean
  onUnreadable: () => void
  onReset: () => void
  onClosed: () => void
}

/** A client's connection and the proxy's connection to the server for it. */
export class Link {
  readonly #client: Socket
  readonly #server: Socket
  readonly #up: Pipe
  readonly #down: Pipe
  readonly #onReset: () => void
  #isClosed = false
  isSubscriber = false

  constructor(deps: LinkDeps) {
    const client = deps.client
    const server = connect({ ...deps.server, noDelay: true, allowHalfOpen: true })
    this.#client = client
    this.#server = server
    this.#onReset = deps.onReset
    this.#up = this.#pipe('toServer', deps)
    this.#down = this.#pipe('toClient', deps)
    const filter = this.#filter(deps)
    client.on('data', (bytes) => this.#up.push(bytes))
    server.on('data', (bytes) => filter.take(bytes))
    let ends = 2
    for (const socket of [client, server]) {
      socket.on('error', () => this.#destroy()) // When one end breaks, so does the other.
      socket.once('close', () => {
        this.#isClosed = true
        if (--ends === 0) deps.onClosed()
      })
    }
    this.update()
  }

  /** Applies the current faults. */
  update(): void {
    this.#up.update()
    this.#down.update()
  }

  /** Resets both ends, at once or after this many more bytes to the client. */
  reset(afterBytes: number): void {
    if (afterBytes > 0) {
      this.#down.cutAfter(afterBytes)
      return
    }
    if (this.#isClosed) return
    this.#onReset()
    this.#destroy()
  }

  #pipe(direction: 'toServer' | 'toClient', { faults, random }: LinkDeps): Pipe {
    const isUp = direction === 'toServer'
    const [source, sink] = isUp ? [this.#client, this.#server] : [this.#server, this.#client]
    return new Pipe({ direction, source, sink, faults, random: random.fork(direction), onCut: () => this.reset(0) })
  }

  #filter({ keep, onUnreadable }: LinkDeps): MessageFilter {
    return new MessageFilter({
      keep,
      onUnreadable,
      onSubscribed: () => {
        this.isSubscriber = true
      },
      forward: (bytes) => this.#down.push(bytes),
    })
  }

  #destroy(): void {
    this.#isClosed = true
    this.#up.close()
    this.#down.close()
    for (const socket of [this.#client, this.#server]) resetNow(socket)
  }
}

/** Node never closes the handle of a socket that is reset while it is shutting down; such a socket is destroyed. */
function resetNow(socket: Socket): void {
  if (socket.connecting || socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}
