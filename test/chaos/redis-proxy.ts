import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { freePort } from '../../scripts/local-services/free-port.ts'
import type { Random } from '../harness/seed.ts'
import type { Faults } from './proxy/faults.ts'
import { Link } from './proxy/link.ts'
import type { PubSubMessage } from './resp.ts'

export type ProxyOptions = {
  /** The Redis behind it; user, password and database of its URL are kept in the proxy's. */
  target: string
  /** Decides slices, jitter, and where resets cut: a fork of the scenario's. */
  random: Random
}

export type ProxyStats = {
  /** Connections so far, and those open now. */
  connections: number
  open: number
  /** Pub/sub messages that the server sent, and those of them that were lost here. */
  messages: number
  dropped: number
  /** Connections that were reset here. */
  resets: number
  /** Connections that sent what is no RESP: their messages go through unseen. */
  unreadable: number
}

/** Starts a proxy for one client process and one Redis: a partition is a matter of one edge. */
export async function startRedisProxy({ target, random }: ProxyOptions): Promise<RedisProxy> {
  const proxy = new RedisProxy(target, await freePort(), random)
  await proxy.mode({})
  return proxy
}

/** Stands in front of a Redis and does to its connections what networks do. Without faults it is transparent. */
export class RedisProxy implements AsyncDisposable {
  readonly url: string
  readonly seed: number
  readonly #target: URL
  readonly #port: number
  readonly #random: Random
  readonly #links = new Set<Link>()
  readonly #stats: ProxyStats = { connections: 0, open: 0, messages: 0, dropped: 0, resets: 0, unreadable: 0 }
  #listener: Server | undefined
  #faults: Faults = {}

  constructor(target: string, port: number, random: Random) {
    this.#target = new URL(target)
    this.#port = port
    this.#random = random
    this.seed = random.seed
    const own = new URL(target)
    own.hostname = '127.0.0.1'
    own.port = String(port)
    this.url = own.href
  }

  get stats(): Readonly<ProxyStats> {
    return { ...this.#stats, open: this.#links.size }
  }

  /** From now on these faults and no others, on open connections too; without any the link is healed. */
  async mode(faults: Faults = {}): Promise<void> {
    this.#faults = faults
    for (const link of this.#links) link.update()
    if (faults.refuse) this.#unlisten()
    else await this.#listen()
  }

  /**
   * Resets connections (RST), each at once or after a random number of up to `withinBytes` more bytes to its client; returns
   * how many. A connection is a subscriber's once the server has confirmed a subscription on it.
   */
  reset(which: 'all' | 'one' | 'subscribers' = 'all', withinBytes = 0): number {
    const links = [...this.#links].filter(({ isSubscriber }) => which !== 'subscribers' || isSubscriber)
    const chosen = which === 'one' && links.length > 0 ? [this.#random.pick(links)] : links
    for (const link of chosen) link.reset(withinBytes > 0 ? this.#random.between(1, withinBytes) : 0)
    return chosen.length
  }

  /** Resets what is open and listens no more. */
  async close(): Promise<void> {
    this.#unlisten()
    this.reset('all')
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #listen(): Promise<void> {
    if (this.#listener) return
    this.#listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client))
    this.#listener.listen(this.#port, '127.0.0.1')
    await once(this.#listener, 'listening')
  }

  #unlisten(): void {
    this.#listener?.close()
    this.#listener = undefined
  }

  #accept(client: Socket): void {
    const number = ++this.#stats.connections
    const link = new Link({
      client,
      server: { host: this.#target.hostname, port: Number(this.#target.port || '6379') },
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
