import type { Log } from '../../kernel/log.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { RedisLink } from '../../platform/redis/link.ts'
import { storedText } from './event-text.ts'
import { type EventLog, type EventWatch, KEPT_EVENTS, type TenantEvent } from './port.ts'
import { FollowedLog } from './redis-followed-log.ts'
import { APPEND, keyOf } from './redis-scripts.ts'

type Link = Pick<RedisLink, 'prefix' | 'run' | 'subscribeToScripts' | 'unsubscribeFromScripts'>

export type RedisEventLogOptions = {
  /** How often a followed log is read in case that a message was lost. */
  checkMs?: number
  /** The most events that wait for Redis; 10,000 by default. */
  maxWaiting?: number
}

/** Events of a tenant that come within this time are written together. */
const BATCH_MS = 5
/** The least time between two writes, so that a busy process writes several events at a time. */
const WRITE_EVERY_MS = 25
const RETRY_MS = 500
const MAX_WAITING = 10_000
const MAX_BATCH = 200
const UNUSED_MS = 24 * 3_600_000

/** Events that wait to be written for one tenant. */
type Waiting = { events: string[]; hasLost: boolean }

/**
 * Each tenant's log is a Redis stream. A process with readers of a log subscribes to its channel once for all of them, and reads the stream
 * only for readers that reconnect, and when a message was lost.
 */
export class RedisEventLog implements EventLog {
  readonly #link: Link
  readonly #log: Log
  readonly #checkMs: number | undefined
  readonly #maxWaiting: number
  #waiting = new Map<TenantId, Waiting>()
  #waitingCount = 0
  #timer: NodeJS.Timeout | undefined
  #writtenAt = -Infinity
  #writing: Promise<void> = Promise.resolve()
  readonly #followed = new Map<TenantId, Promise<FollowedLog>>()

  constructor(link: Link, log: Log, { checkMs, maxWaiting = MAX_WAITING }: RedisEventLogOptions = {}) {
    this.#link = link
    this.#log = log
    this.#checkMs = checkMs
    this.#maxWaiting = maxWaiting
  }

  append(tenant: TenantId, event: TenantEvent): void {
    const waiting = this.#waiting.get(tenant) ?? { events: [], hasLost: false }
    this.#waiting.set(tenant, waiting)
    if (this.#waitingCount >= this.#maxWaiting) this.#lose(tenant, waiting)
    waiting.events.push(storedText(event))
    this.#waitingCount++
    this.#schedule(BATCH_MS)
  }

  async watch(tenant: TenantId): Promise<EventWatch> {
    for (;;) {
      const following = this.#followed.get(tenant) ?? this.#follow(tenant)
      const followed = await following
      // Its last reader may have left in the meantime.
      if (this.#followed.get(tenant) === following) return followed.open(() => this.#followed.delete(tenant))
    }
  }

  /** Resolves when all waiting events are written, or Redis has refused them. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#writing
    await this.#write()
    for (const following of this.#followed.values()) (await following.catch(() => undefined))?.close()
  }

  #follow(tenant: TenantId): Promise<FollowedLog> {
    const following = FollowedLog.open(tenant, this.#link, this.#checkMs)
    this.#followed.set(tenant, following)
    following.catch(() => {
      if (this.#followed.get(tenant) === following) this.#followed.delete(tenant)
    })
    return following
  }

  /** The readers of a log that has lost events must read their state again (D16c). */
  #lose(tenant: TenantId, waiting: Waiting): void {
    if (!waiting.hasLost) this.#log.error('events for GET /events were lost: too many wait for Redis', { tenant })
    this.#waitingCount -= waiting.events.length
    waiting.events = []
    waiting.hasLost = true
  }

  #schedule(ms: number): void {
    if (this.#timer) return
    const leastMs = this.#writtenAt + WRITE_EVERY_MS - performance.now()
    const write = () => {
      this.#writing = this.#write().then((hasWritten) => {
        this.#timer = undefined
        this.#writtenAt = performance.now()
        if (this.#waiting.size > 0) this.#schedule(hasWritten ? BATCH_MS : RETRY_MS)
      })
    }
    this.#timer = setTimeout(write, Math.max(ms, leastMs)).unref()
  }

  /** Returns whether everything was written. The rest is written with the next events, in the same order. */
  async #write(): Promise<boolean> {
    const writes = await Promise.all([...this.#waiting].map(([tenant, waiting]) => this.#writeOf(tenant, waiting)))
    return writes.every(Boolean)
  }

  async #writeOf(tenant: TenantId, waiting: Waiting): Promise<boolean> {
    const events = waiting.events.slice(0, MAX_BATCH)
    const { hasLost } = waiting
    const channel = this.#link.prefix + keyOf(tenant)
    try {
      await this.#link.run(APPEND, [keyOf(tenant)], [channel, KEPT_EVENTS, UNUSED_MS, hasLost ? '1' : '0', ...events])
    } catch (cause) {
      this.#log.debug('events for GET /events cannot be written at the moment', { tenant, cause })
      return false
    }
    // Events that were dropped meanwhile are no longer at the front.
    if (waiting.events[0] === events[0]) {
      waiting.events.splice(0, events.length)
      this.#waitingCount -= events.length
      waiting.hasLost = false
    }
    if (waiting.events.length === 0) this.#waiting.delete(tenant)
    return true
  }
}
