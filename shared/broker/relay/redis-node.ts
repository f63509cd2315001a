import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../log.ts'
import type { Metrics } from '../../metrics.ts'
import type { Lease } from '../placement/lease.ts'
import type { Member, MemberFields, Members } from '../placement/members.ts'
import type { RedisLink } from '../redis-link.ts'
import { ackedPosition, Credit } from './credit.ts'
import { Outbox } from './outbox.ts'
import { RECORD, type ReceivedRecord, readMessage } from './records.ts'

export type NodeHandlers = {
  /** A record came from the process of this epoch. */
  onRecord(from: number, received: ReceivedRecord): void
  /** The processes that live have been listed anew. */
  onMembers(members: readonly Member[]): void
  /** This process is gone: nothing more will come from it. */
  onMemberLost(epoch: number): void
  /** This process was judged dead: all it held is somebody else's, or nobody's. It has another epoch from now on. */
  onEvicted(): void
  /** Redis has restarted empty: what this process had written there is to be written again. */
  onRedisEmptied(): void
  /** A message to this process was heard by nobody. */
  onUndelivered(epoch: number): void
}

export type NodeDeps = {
  link: RedisLink
  members: Members
  describe: () => MemberFields
  lease: Lease
  log: Log
  metrics: Metrics
}

export type NodeTimes = {
  tickMs: number
  /** A little less than a second, so that it is every other tick; after a failure it is the next. */
  renewMs: number
  /** After a loss of everything, so long until all have written again what they hold. */
  rebuildMs: number
  /** Leases are judged only by who has had answers for so long, without a pause of its own. */
  steadyMs: number
  /** A tick that comes later than this was a pause. */
  slipMs: number
}

const TIMES: NodeTimes = { tickMs: 500, renewMs: 900, rebuildMs: 1_500, steadyMs: 4_000, slipMs: 500 }

const FLUSH_MS = 1_000

/** A process among the others: its epoch and lease, what it sends each of them, and what comes from them. */
export class RedisNode {
  readonly #deps: NodeDeps
  readonly #handlers: NodeHandlers
  readonly #times: NodeTimes
  readonly #outboxes = new Map<number, Outbox>()
  readonly #credit = new Credit()
  readonly #gone = new Set<number>()
  #epoch = 0
  #timer: NodeJS.Timeout | undefined
  #lastTickAt = 0
  #renewedAt = 0
  #emptyAt = -Infinity
  #steadySince = 0
  #members: readonly Member[] = []
  #listing: Promise<void> | undefined
  #isTicking = false

  constructor(deps: NodeDeps, handlers: NodeHandlers, times: NodeTimes = TIMES) {
    this.#deps = deps
    this.#times = times
    this.#handlers = handlers
  }

  get epoch(): number {
    return this.#epoch
  }

  /** Joins, listens and keeps the lease. It has listed the members once when it resolves. */
  async start(): Promise<void> {
    await this.#enter()
    this.#lastTickAt = performance.now()
    this.#steadySince = this.#lastTickAt
    await this.refreshMembers()
    this.#timer = setInterval(() => void this.#tick(), this.#times.tickMs)
  }

  /** Tells at once what has changed of this process. */
  async announce(): Promise<void> {
    await this.#renew()
  }

  /** Looks for a process that somebody has heard of and this one has not: one that is younger than all it knows. */
  async discover(epoch: number): Promise<void> {
    if (this.#members.every((known) => known.epoch < epoch)) await this.refreshMembers()
  }

  /** `false` while what Redis knew is being written again. */
  async isRebuilt(): Promise<boolean> {
    const isRemembered = await this.#deps.members.isRemembered() // First: this process may find out meanwhile.
    return isRemembered && performance.now() - this.#emptyAt > this.#times.rebuildMs
  }

  /** Resolves when everything that can be sent has been, or after a second. */
  async flushed(): Promise<void> {
    const until = performance.now() + FLUSH_MS
    while (performance.now() < until && [...this.#outboxes.values()].some((outbox) => outbox.isBusy)) await sleep(5)
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#deps.members.leave(this.#epoch).catch(() => {}) // Its lease ends it as well.
  }

  /** What is sent to the process of this epoch. */
  outbox(role: MemberFields['role'], epoch: number): Outbox {
    const known = this.#outboxes.get(epoch)
    if (known) return known
    const channel = channelOf(role, epoch)
    const outbox = new Outbox({
      epoch: this.#epoch,
      publish: (message) => {
        this.#deps.metrics.observe('relay_batch_bytes', message.length)
        return this.#deps.link.publish(channel, message)
      },
      canSendFrames: () => this.#deps.lease.isHeld(),
      onPublished: (subscribers) => {
        if (subscribers === 0) this.#handlers.onUndelivered(epoch)
      },
    })
    this.#outboxes.set(epoch, outbox)
    return outbox
  }

  async #enter(): Promise<void> {
    const { link, members, describe } = this.#deps
    const old = this.#epoch
    const askedAt = performance.now()
    this.#epoch = await members.join(describe())
    const { role } = describe()
    await link.listen(channelOf(role, this.#epoch), (message) => this.#receive(message))
    if (old > 0) await link.unlisten(channelOf(role, old))
    this.#renewedAt = askedAt
    this.#deps.lease.renewed(askedAt)
  }

  #receive(message: Buffer): void {
    const records: ReceivedRecord[] = []
    const { epoch, position } = readMessage(message, (received) => records.push(received))
    if (this.#gone.has(epoch)) {
      const frames = records.filter(({ type }) => type === RECORD.frames)
      return this.#deps.metrics.count('stale_frames_dropped', sumOf(frames.map(({ count }) => count)))
    }
    const isBeat = records.some(({ type }) => type === RECORD.beat)
    const ack = this.#credit.received(epoch, { position, isBeat })
    if (ack) this.outbox(this.#roleOf(epoch), epoch).send(ack)
    for (const received of records) {
      if (received.type === RECORD.ack) this.#outboxes.get(epoch)?.acked(ackedPosition(received))
      else this.#handlers.onRecord(epoch, received)
    }
  }

  /** Who is not on the list yet has just joined, and workers meet one another only when they leave. */
  #roleOf(epoch: number): MemberFields['role'] {
    const known = this.#members.find((member) => member.epoch === epoch)
    return known?.role ?? (this.#deps.describe().role === 'gateway' ? 'worker' : 'gateway')
  }

  async #tick(): Promise<void> {
    this.#noticeOwnPause()
    if (this.#isTicking) return
    this.#isTicking = true
    try {
      if (performance.now() - this.#renewedAt >= this.#times.renewMs) {
        await this.#renew()
        for (const outbox of this.#outboxes.values()) outbox.beat()
      }
      await this.refreshMembers()
    } catch {
      this.#steadySince = performance.now()
    } finally {
      this.#isTicking = false
    }
  }

  /** A process that was stopped for a while has not seen others renew: it judges nobody by that time. */
  #noticeOwnPause(): void {
    const now = performance.now()
    if (now - this.#lastTickAt > this.#times.tickMs + this.#times.slipMs) this.#steadySince = now
    this.#lastTickAt = now
  }

  async #renew(): Promise<void> {
    const askedAt = performance.now()
    const outcome = await this.#deps.members.renew(this.#epoch, this.#deps.describe())
    if (outcome === 'dead') return this.#return()
    if (outcome === 'empty') {
      this.#emptyAt = askedAt
      this.#handlers.onRedisEmptied()
    }
    this.#renewedAt = askedAt
    this.#deps.lease.renewed(askedAt)
    for (const outbox of this.#outboxes.values()) outbox.resume()
  }

  async #return(): Promise<void> {
    this.#deps.log.warn('this process was judged dead; it goes on under a new epoch', { epoch: this.#epoch })
    for (const outbox of this.#outboxes.values()) outbox.close()
    this.#outboxes.clear()
    this.#credit.clear()
    this.#handlers.onEvicted()
    await this.#enter()
  }

  /** Lists the members now. */
  async refreshMembers(): Promise<void> {
    this.#listing ??= this.#list().finally(() => {
      this.#listing = undefined
    })
    await this.#listing
  }

  async #list(): Promise<void> {
    const reachable = [...this.#outboxes.keys()] // Who is met meanwhile may have joined after the list was made.
    const members = await this.#deps.members.list()
    // Without this process the list is that of a Redis that has forgotten, or of one that has judged: no ground to judge on.
    if (!members.some(({ epoch }) => epoch === this.#epoch)) {
      this.#steadySince = performance.now()
      return
    }
    const isSteady = performance.now() - Math.max(this.#steadySince, this.#emptyAt) >= this.#times.steadyMs
    const lapsed = isSteady ? members.filter(({ expiresInMs }) => expiresInMs <= 0) : []
    for (const { epoch } of lapsed) if (await this.#deps.members.expire(epoch)) this.#bury(epoch)
    const listed = new Set(members.map(({ epoch }) => epoch))
    // Who has left, or was judged by another.
    if (isSteady) for (const epoch of reachable) if (!listed.has(epoch)) this.#bury(epoch)
    const missing = isSteady ? [] : this.#members.filter(({ epoch }) => !listed.has(epoch))
    this.#members = [...members, ...missing].filter(({ epoch }) => !this.#gone.has(epoch))
    this.#handlers.onMembers(this.#members)
  }

  #bury(epoch: number): void {
    this.#gone.add(epoch)
    this.#credit.forget(epoch)
    this.#outboxes.get(epoch)?.close()
    this.#outboxes.delete(epoch)
    this.#handlers.onMemberLost(epoch)
  }
}

const channelOf = (role: MemberFields['role'], epoch: number): string =>
  `ae:${role === 'gateway' ? 'gw' : 'wk'}:${epoch}`

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0)
