import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../harness/seed.ts'
import { primariesOf } from '../../../support/cluster-redis.ts'
import { dropByChance } from '../../proxy/faults.ts'
import type { RedisProxy } from '../../redis-proxy.ts'
import type { World } from '../../world.ts'

const LOSS = 0.01
/** Resets within this many bytes cut messages as well as the space between them. */
const MID_MESSAGE_BYTES = 64 * 1024
/** How long all messages to one worker are dropped. */
const SILENCE_MS = 1_000
const EVERY_MS = { min: 300, max: 1_200 }

export type FaultCounts = { messages: number; dropped: number; resets: number; kills: number }

/** Drops one in a hundred pub/sub messages to each process, and breaks subscribers' connections at random times. */
export class Nemesis {
  readonly #world: World
  readonly #random: Random
  readonly #over = new AbortController()
  #kills = 0
  #isDone: Promise<void> = Promise.resolve()

  constructor(world: World, random: Random) {
    this.#world = world
    this.#random = random
  }

  async start(): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => this.#dropSome(proxy)))
    this.#isDone = this.#breakConnections()
  }

  /** Ends all faults and resolves with their counts. */
  async stop(): Promise<FaultCounts> {
    this.#over.abort()
    await this.#isDone
    await Promise.all(this.#proxies.map((proxy) => proxy.mode()))
    const stats = this.#proxies.map((proxy) => proxy.stats)
    const sum = (pick: (each: (typeof stats)[number]) => number) => stats.reduce((all, each) => all + pick(each), 0)
    return {
      messages: sum(({ messages }) => messages),
      dropped: sum(({ dropped }) => dropped),
      resets: sum(({ resets }) => resets),
      kills: this.#kills,
    }
  }

  get #proxies() {
    return [...this.#world.gateways, ...this.#world.workers].flatMap(({ proxy }) => proxy ?? [])
  }

  async #breakConnections(): Promise<void> {
    const { signal } = this.#over
    while (!signal.aborted) {
      await sleep(this.#random.between(EVERY_MS.min, EVERY_MS.max), undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      await this.#breakOne()
    }
  }

  async #breakOne(): Promise<void> {
    const proxy = this.#random.pick(this.#proxies)
    const way = this.#random.between(1, 5)
    if (way === 1) proxy.reset('subscribers')
    else if (way === 2) proxy.reset('subscribers', MID_MESSAGE_BYTES)
    else if (way === 3) proxy.reset('one', MID_MESSAGE_BYTES)
    else if (way === 4) await this.#silenceWorker()
    else await this.#killSubscriber()
  }

  async #silenceWorker(): Promise<void> {
    const { proxy } = this.#random.pick(this.#world.workers)
    if (!proxy) return
    await proxy.mode({ drop: () => true })
    await sleep(SILENCE_MS)
    await this.#dropSome(proxy)
  }

  #dropSome(proxy: RedisProxy): Promise<void> {
    return proxy.mode({ drop: dropByChance(LOSS, this.#random.fork(`loss at ${proxy.url}`)) })
  }

  /** Lets Redis close a subscriber's connection, as it does when too much output is pending. */
  async #killSubscriber(): Promise<void> {
    await this.#world.redis.withClient(async (client) => {
      const redis = this.#random.pick(primariesOf(client))
      const list = String(await redis.call('CLIENT', 'LIST', 'TYPE', 'PUBSUB'))
      const ids = [...list.matchAll(/^id=(\d+)/gm)].map(([, id = '']) => id)
      if (ids.length === 0) return
      await redis.call('CLIENT', 'KILL', 'ID', this.#random.pick(ids))
      this.#kills++
    })
  }
}
