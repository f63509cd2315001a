import { type EventEmitter, once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Redis } from 'ioredis'
import { Random } from '../../harness/seed.ts'
import { useOpened } from '../../support/fixture.ts'
import { type TestRedis, useRedis } from '../../support/redis.ts'
import { type RedisProxy, startRedisProxy } from '../redis-proxy.ts'

export type ProxyBed = {
  redis: TestRedis
  readonly proxy: RedisProxy
  /** A client that has subscribed to channel `c` through the proxy. */
  subscribe(protocol?: 2 | 3): Promise<Redis>
  /** Publishes on `c` without the proxy, in one pipeline. */
  publish(messages: readonly (string | number)[]): Promise<void>
}

/** One Redis for the file, and a new proxy for each test. */
export function useProxy(): ProxyBed {
  const redis = useRedis()
  const proxy = useOpened(() => startRedisProxy({ target: redis.url, random: new Random(1) }), { perTest: true })
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

/** Resolves with the messages of a subscriber up to `last`. */
export function receive(subscriber: Redis, last: string): Promise<string[]> {
  const received: string[] = []
  const { promise, resolve } = Promise.withResolvers<string[]>()
  subscriber.on('message', (_channel, message) => {
    received.push(message)
    if (message === last) resolve(received)
  })
  return promise
}

/** As `once` of node:events, but an error event does not reject. */
export const next = (emitter: EventEmitter, event: string) => new Promise((resolve) => emitter.once(event, resolve))

/** A TCP connection to the proxy. */
export async function rawConnection(proxy: RedisProxy): Promise<Socket> {
  const socket = connect(Number(new URL(proxy.url).port), '127.0.0.1')
  await once(socket, 'connect')
  return socket.on('error', () => {})
}

export const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1)
