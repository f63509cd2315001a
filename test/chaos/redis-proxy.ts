import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { freePort } from '../../scripts/local-services/free-port.ts'
import type { Random } from '../harness/seed.ts'
import type { Faults } from './proxy/faults.ts'
import { Link } from './proxy/link.ts'
import type { PubSubMessage } from './resp.ts'

export type ProxyOptions = {
  /** The URL of the Redis. The proxy's own URL keeps its user, password and database. */
  target: string
  /** The URLs of the other nodes of a Redis Cluster. */
  others?: readonly string[]
  /** Determines slices, jitter, and where resets cut. A fork of the scenario's generator. */
  random: Random
}

export type ProxyStats = {
  /** Connections so far and those that are open. */
  connections: number
  open: number
  /** Pub/sub messages that the server sent, and those of them that the proxy dropped. */
  messages: number
  dropped: number
  /** Connections that the proxy reset. */
  resets: number
  /** Connections with bytes that are not RESP. Their messages pass unfiltered. */
  unreadable: number
}

/** Starts a proxy between one client process and one Redis, so that each link can be partitioned on its own. */
export async function startRedisProxy({ target, others = [], random }: ProxyOptions): Promise<RedisProxy> {
  const listeners: Listener[] = []
  for (const url of [target, ...others]) listeners.push({ target: new URL(url), port: await freePort() })
  const proxy = new RedisProxy(target, listeners, random)
  await proxy.mode({})
  return proxy
}

type Listener = { target: URL; port: number; server?: Server | undefined }

/** A TCP proxy in front of a Redis, or of all nodes of a Redis Cluster, that injects network faults. Without faults it is transparent. */
export class RedisProxy implements AsyncDisposable {
  readonly url: string
  readonly seed: number
  readonly #listeners: readonly Listener[]
  readonly #random: Random
  readonly #links = new Set<Link>()
  readonly #stats: ProxyStats = { connections: 0, open: 0, messages: 0, dropped: 0, resets: 0, unreadable: 0 }
  #faults: Faults = {}

  constructor(target: string, listeners: readonly Listener[], random: Random) {
    this.#listeners = listeners
    this.#random = random
    this.seed = random.seed
    const own = new URL(target)
    own.hostname = '127.0.0.1'
    own.port = String(listeners[0]?.port)
    this.url = own.href
  }

  /** The proxy's port for the port of each server. */
  get ports(): [number, number][] {
    return this.#listeners.map(({ target, port }) => [portOf(target), port])
  }

  get stats(): Readonly<ProxyStats> {
    return { ...this.#stats, open: this.#links.size }
  }

  /** Replaces the faults, also for open connections. Without an argument, all faults end. */
  async mode(faults: Faults = {}): Promise<void> {
    this.#faults = faults
    for (const link of this.#links) link.update()
    if (faults.refuse) this.#unlisten()
    else await this.#listen()
  }

  /**
   * Resets connections (RST), each at once or after a random number of up to `withinBytes` more bytes to its client.
   * Returns how many. A connection is a subscriber's once the server has confirmed a subscription on it.
   */
  reset(which: 'all' | 'one' | 'subscribers' = 'all', withinBytes = 0): number {
    const links = [...this.#links].filter(({ isSubscriber }) => which !== 'subscribers' || isSubscriber)
    const chosen = which === 'one' && links.length > 0 ? [this.#random.pick(links)] : links
    for (const link of chosen) link.reset(withinBytes > 0 ? this.#random.between(1, withinBytes) : 0)
    return chosen.length
  }

  /** Resets the open connections and stops listening. */
  async close(): Promise<void> {
    this.#unlisten()
    this.reset('all')
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #listen(): Promise<void> {
    await Promise.all(
      this.#listeners.map(async (listener) => {
        if (listener.server) return
        const { target, port } = listener
        listener.server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client, target))
        listener.server.listen(port, '127.0.0.1')
        await once(listener.server, 'listening')
      }),
    )
  }

  #unlisten(): void {
    for (const listener of this.#listeners) {
      listener.server?.close()
      listener.server = undefined
    }
  }

  #accept(client: Socket, target: URL): void {
    const number = ++this.#stats.connections
    const link = new Link({
      client,
      server: { host: target.hostname, port: portOf(target) },
      faults: () => this.#faults,
      random: this.#random.fork(`connection ${number}`),
      keep: (message) => this.#keep(message),
      onUnreadable: () => void this.#stats.unreadable++,
      onReset: () => void this.#stats.resets++,
      onClosed: () => void this.#links.delete(link),
    })
    this.#links.add(link)
  }

  #keep(message: PubSubMessage): boolean {
    const number = ++this.#stats.messages
    const isLost = this.#faults.drop?.({ ...message, number }) ?? false
    if (isLost) this.#stats.dropped++
    return !isLost
  }
}

const portOf = ({ port }: URL): number => Number(port || '6379')
