import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisClient } from './connect.ts'

const PAUSE_MS = 300

/**
 * The connection for subscriptions. With a single Redis, ioredis reconnects by itself. In a Redis Cluster a client that has lost all nodes
 * ends and is replaced by a new one: the old one could wait forever for a connection that it had given up, and receive nothing.
 */
export class Listener {
  readonly #open: () => RedisClient
  readonly #onClient: (client: RedisClient) => void
  #client: RedisClient
  #isClosed = false

  /** Calls `onClient` with each client before it connects. */
  constructor(open: () => RedisClient, onClient: (client: RedisClient) => void) {
    this.#open = open
    this.#onClient = onClient
    this.#client = this.#next()
  }

  get client(): RedisClient {
    return this.#client
  }

  connect(): Promise<void> {
    return this.#client.connect()
  }

  /** Replaces the connection, because the present one hangs. */
  reconnect(): void {
    this.#client.disconnect(true)
  }

  close(): void {
    this.#isClosed = true
    // Messages that still arrive on the old client are ignored.
    for (const event of ['messageBuffer', 'smessageBuffer']) this.#client.removeAllListeners(event)
    this.#client.disconnect()
  }

  #next(): RedisClient {
    const client = this.#open()
    this.#onClient(client)
    client.once('end', () => void this.#replace())
    return client
  }

  async #replace(): Promise<void> {
    await sleep(PAUSE_MS, undefined, { ref: false })
    if (this.#isClosed) return
    this.#client = this.#next()
    await this.#client.connect().catch(() => {}) // A failed connection ends, and the handler of that replaces it.
  }
}
