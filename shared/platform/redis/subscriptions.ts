import { retryUntil } from '../../kernel/async/retry.ts'
import type { RedisClient } from './connect.ts'
import { Listener } from './listener.ts'

const RETRY_MS = 300

export interface Subscriptions {
  /** Subscribes to the messages of `publish`. The subscription is renewed with each new connection, until `unsubscribe`. */
  subscribe(channel: string, onMessage: OnMessage): Promise<void>
  unsubscribe(channel: string): Promise<void>
  /** The same for messages that scripts publish. In a Redis Cluster such a message goes to all nodes, because a script runs on only one. */
  subscribeToScripts(channel: string, onMessage: OnMessage): Promise<void>
  unsubscribeFromScripts(channel: string): Promise<void>
  /** Renews all subscriptions. */
  resubscribe(): Promise<void>
  /** Replaces the connection for subscriptions, because the present one hangs. */
  reconnect(): void
}

type OnMessage = (message: Buffer) => void

type Scope = { prefix: string; tracked<T>(answer: Promise<T>): Promise<T> }

/** The subscriptions with their connection, which `open` creates. */
export type OwnSubscriptions = { subscriptions: Subscriptions; connect(): Promise<void>; close(): void }

/** Outside a Redis Cluster both kinds of subscriptions are the same. */
export function createSubscriptions(open: () => RedisClient, scope: Scope): OwnSubscriptions {
  const onClient = (client: RedisClient) => {
    for (const channels of all) channels.hear(client)
    // In a Redis Cluster the connections for subscriptions open some moments later, and again when its nodes change.
    for (const event of ['ready', 'subscribersReady'])
      client.on(event, () => void subscribeAgain(client).catch(() => {}))
  }
  const subscribeAgain = (client: RedisClient) =>
    retryUntil(resubscribe, { pauses: RETRY_MS, mayPass: () => client.status === 'ready', ref: false })
  const resubscribe = async () => void (await Promise.all([...all].map((channels) => channels.resubscribe())))
  const current = () => listener.client
  const broadcast = new Channels(current, scope, ['messageBuffer', 'subscribe', 'unsubscribe'])
  const sharded = new Channels(current, scope, ['smessageBuffer', 'ssubscribe', 'sunsubscribe'])
  const all = new Set([broadcast, sharded])
  const listener: Listener = new Listener(open, onClient)
  const own = listener.client.isCluster ? sharded : broadcast
  return {
    subscriptions: {
      subscribe: (channel, onMessage) => own.subscribe(channel, onMessage),
      unsubscribe: (channel) => own.unsubscribe(channel),
      subscribeToScripts: (channel, onMessage) => broadcast.subscribe(channel, onMessage),
      unsubscribeFromScripts: (channel) => broadcast.unsubscribe(channel),
      resubscribe,
      reconnect: () => listener.reconnect(),
    },
    connect: () => listener.connect(),
    close: () => listener.close(),
  }
}

type Commands = [
  event: 'messageBuffer' | 'smessageBuffer',
  subscribe: 'subscribe' | 'ssubscribe',
  unsubscribe: 'unsubscribe' | 'sunsubscribe',
]

/** The channels of one kind. ioredis forgets subscriptions when a connection breaks before they were renewed, so they are kept here. */
class Channels {
  readonly #client: () => RedisClient
  readonly #scope: Scope
  readonly #commands: Commands
  readonly #handlers = new Map<string, OnMessage>()

  constructor(client: () => RedisClient, scope: Scope, commands: Commands) {
    this.#client = client
    this.#scope = scope
    this.#commands = commands
  }

  hear(client: RedisClient): void {
    const [event] = this.#commands
    client.on(event, (channel: Buffer, message: Buffer) => this.#handlers.get(String(channel))?.(message))
  }

  async subscribe(name: string, onMessage: OnMessage): Promise<void> {
    const channel = this.#scope.prefix + name
    this.#handlers.set(channel, onMessage)
    try {
      await this.#subscribe([channel])
    } catch (cause) {
      this.#handlers.delete(channel)
      // In a Redis Cluster ioredis would otherwise subscribe later, when the nodes change.
      void this.#unsubscribe(channel).catch(() => {})
      throw cause
    }
  }

  async unsubscribe(name: string): Promise<void> {
    const channel = this.#scope.prefix + name
    this.#handlers.delete(channel)
    await this.#unsubscribe(channel)
  }

  async resubscribe(): Promise<void> {
    if (this.#handlers.size > 0) await this.#subscribe([...this.#handlers.keys()])
  }

  async #unsubscribe(channel: string): Promise<void> {
    const [, , unsubscribe] = this.#commands
    await this.#scope.tracked(this.#client()[unsubscribe](channel))
  }

  /** In a Redis Cluster, channels that are not in the same slot cannot be named in one command. */
  async #subscribe(channels: readonly string[]): Promise<void> {
    const [, subscribe] = this.#commands
    const { tracked } = this.#scope
    if (subscribe === 'subscribe') await tracked(this.#client().subscribe(...channels))
    else await Promise.all(channels.map((channel) => tracked(this.#client().ssubscribe(channel))))
  }
}
