import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisClient } from './connect.ts'

const PAUSE_MS = 300

/**
 * The connection for subscriptions. ioredis connects to one Redis again by itself. In a Redis Cluster a client that has lost all nodes ends
 * and is replaced by a new one: the same client could wait for ever for a connection that it had given up, and would hear nothing.
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

  /** Replaces the connection: the present one hangs. */
  reconnect(): void {
    this.#client.disconnect(true)
  }

  close(): void {
    this.#isClosed = true
    // Messages that are still on their way are for nobody.
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
    await this.#client.connect().catch(() => {}) // A connection that fails ends, and its end replaces it.
  }
}
