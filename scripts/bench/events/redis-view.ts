import { Redis } from 'ioredis'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { positionOf, START } from '../../../shared/tenancy/events/event-text.ts'
import type { EventPosition } from '../../../shared/tenancy/events/port.ts'
import { keyOf } from '../../../shared/tenancy/events/redis-scripts.ts'

/** CLUSTER_NAME's default, with which the keys and channels of a cluster begin. */
const KEY = `ae:${keyOf(DEFAULT_TENANT)}`

export type RedisCounts = {
  commands: number
  /** Commands that read entries of a stream. */
  reads: number
}

/** The log of the tenant without a token, as Redis sees it. */
export class RedisView implements Disposable {
  readonly #client: Redis

  constructor(url: string) {
    this.#client = new Redis(url)
  }

  /** The position of the newest event. */
  async end(): Promise<EventPosition> {
    const [newest] = await this.#client.xrevrange(KEY, '+', '-', 'COUNT', 1)
    return positionOf(newest?.[0] ?? '') ?? START
  }

  /** How many connections receive the tenant's events. */
  async subscribers(): Promise<number> {
    const [, count] = (await this.#client.pubsub('NUMSUB', KEY)) as [string, number]
    return count
  }

  async counts(): Promise<RedisCounts> {
    const text = await this.#client.info('all')
    const read = (pattern: RegExp) => Number(pattern.exec(text)?.[1] ?? 0)
    return {
      commands: read(/^total_commands_processed:(\d+)/m),
      reads: read(/^cmdstat_xrange:calls=(\d+)/m),
    }
  }

  [Symbol.dispose](): void {
    this.#client.disconnect()
  }
}
