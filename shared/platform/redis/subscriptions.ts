import { retryUntil } from '../../kernel/async/retry.ts'
import type { RedisClient } from './connect.ts'

const RETRY_MS = 300

export interface Subscriptions {
  /** Subscribes to what `publish` sends. The subscription is made again with each new connection, until `unsubscribe`. */
  subscribe(channel: string, onMessage: OnMessage): Promise<void>
  unsubscribe(channel: string): Promise<void>
  /** The same for what scripts publish. In a Redis Cluster such a message goes to all nodes, since a script reaches only its own. */
  subscribeToScripts(channel: string, onMessage: OnMessage): Promise<void>
  unsubscribeFromScripts(channel: string): Promise<void>
  /** Makes all subscriptions again. */
  resubscribe(): Promise<void>
  /** Replaces the connection for subscriptions: the present one hangs. */
  reconnect(): void
}

type OnMessage = (message: Buffer) => void

type Scope = { prefix: string; tracked<T>(answer: Promise<T>): Promise<T> }

/** Outside a Redis Cluster both kinds are one. */
export function createSubscriptions(listener: RedisClient, scope: Scope): Subscriptions {
  const broadcast = new Channels(listener, scope, ['messageBuffer', 'subscribe', 'unsubscribe'])
  const own = listener.isCluster
    ? new Channels(listener, scope, ['smessageBuffer', 'ssubscribe', 'sunsubscribe'])
    : broadcast
  const all = new Set([own, broadcast])
  const resubscribe = async () => void (await Promise.all([...all].map((channels) => channels.resubscribe())))
  // In a Redis Cluster the connections for subscriptions may come some moments later. A process that still hears nothing notices it.
  const again = () =>
    retryUntil(resubscribe, { pauses: RETRY_MS, mayPass: () => listener.status === 'ready', ref: false })
  listener.on('ready', () => void again().catch(() => {}))
  return {
    subscribe: (channel, onMessage) => own.subscribe(channel, onMessage),
    unsubscribe: (channel) => own.unsubscribe(channel),
    subscribeToScripts: (channel, onMessage) => broadcast.subscribe(channel, onMessage),
    unsubscribeFromScripts: (channel) => broadcast.unsubscribe(channel),
    resubscribe,
    reconnect: () => listener.disconnect(true),
  }
}

type Commands = [
  event: 'messageBuffer' | 'smessageBuffer',
  subscribe: 'subscribe' | 'ssubscribe',
  unsubscribe: 'unsubscribe' | 'sunsubscribe',
]

/** The channels of one kind. ioredis forgets the subscriptions when a connection breaks before they were made again, so they are kept here. */
class Channels {
  readonly #listener: RedisClient
  readonly #scope: Scope
  readonly #commands: Commands
  readonly #handlers = new Map<string, OnMessage>()

  constructor(listener: RedisClient, scope: Scope, commands: Commands) {
    this.#listener = listener
    this.#scope = scope
    this.#commands = commands
    listener.on(commands[0], (channel: Buffer, message: Buffer) => this.#handlers.get(String(channel))?.(message))
  }

  async subscribe(name: string, onMessage: OnMessage): Promise<void> {
    const channel = this.#scope.prefix + name
    this.#handlers.set(channel, onMessage)
    try {
      await this.#subscribe([channel])
    } catch (cause) {
      this.#handlers.delete(channel)
      throw cause
    }
  }

  async unsubscribe(name: string): Promise<void> {
    const [, , unsubscribe] = this.#commands
    const channel = this.#scope.prefix + name
    this.#handlers.delete(channel)
    await this.#scope.tracked(this.#listener[unsubscribe](channel))
  }

  async resubscribe(): Promise<void> {
    if (this.#handlers.size > 0) await this.#subscribe([...this.#handlers.keys()])
  }

  /** In a Redis Cluster, channels that are not in the same slot cannot be named in one command. */
  async #subscribe(channels: readonly string[]): Promise<void> {
    const [, subscribe] = this.#commands
    const { tracked } = this.#scope
    if (subscribe === 'subscribe') await tracked(this.#listener.subscribe(...channels))
    else await Promise.all(channels.map((channel) => tracked(this.#listener.ssubscribe(channel))))
  }
}
