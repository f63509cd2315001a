import { type EventEmitter, once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Redis } from 'ioredis'
import { Random } from '../../harness/seed.ts'
import { type TestRedis, useRedis } from '../../support/redis.ts'
import { type RedisProxy, startRedisProxy } from '../redis-proxy.ts'

export type ProxyBed = {
  redis: TestRedis
  readonly proxy: RedisProxy
  /** A subscriber of channel `c` behind the proxy. */
  subscribe(protocol?: 2 | 3): Promise<Redis>
  /** Publishes on `c` past the proxy, all in one pipeline. */
  publish(messages: readonly (string | number)[]): Promise<void>
}

/** A Redis of the file's own, and for each test a new proxy in front of it. */
export function useProxy(): ProxyBed {
  const redis = useRedis()
  let proxy: RedisProxy
  beforeEach(async () => {
    proxy = await startRedisProxy({ target: redis.url, random: new Random(1) })
  })
  afterEach(() => proxy.close())
  return {
    redis,
    get proxy() {
      return proxy
    },
    async subscribe(protocol = 3) {
      const subscriber = redis.connect({ protocol, retryStrategy: () => 1 }, proxy.url)
      await subscriber.subscribe('c')
      return subscriber
    },
    async publish(messages) {
      const pipeline = redis.connect().pipeline()
      for (const message of messages) pipeline.publish('c', String(message))
      await pipeline.exec()
    },
  }
}

/** What a subscriber hears until `last`. */
export function hear(subscriber: Redis, last: string): Promise<string[]> {
  const heard: string[] = []
  const { promise, resolve } = Promise.withResolvers<string[]>()
  subscriber.on('message', (_channel, message) => {
    heard.push(message)
    if (message === last) resolve(heard)
  })
  return promise
}

/** As `once`, deaf to errors: a reset is one. */
export const next = (emitter: EventEmitter, event: string) => new Promise((resolve) => emitter.once(event, resolve))

/** A connection to the proxy without a client's manners. */
export async function rawConnection(proxy: RedisProxy): Promise<Socket> {
  const socket = connect(Number(new URL(proxy.url).port), '127.0.0.1')
  await once(socket, 'connect')
  return socket.on('error', () => {})
}

export const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1)
