import type { Log } from '../../log.ts'
import type { Lease } from '../placement/lease.ts'
import type { Member, MemberFields, Members } from '../placement/members.ts'
import { elapsedMs, now } from '../placement/moment.ts'
import type { RedisTransport } from './redis-transport.ts'

export type MembershipDeps = {
  transport: RedisTransport
  members: Members
  lease: Lease
  log: Log
  /** The fields that this process publishes; read before each renewal. */
  describe(): MemberFields
}

export type MembershipHandlers = {
  /** The members were listed again. */
  onMembers(members: readonly Member[]): void
  /** A member has left or was evicted: nothing more will come from it. */
  onMemberLost(epoch: number): void
  /** This process was evicted: what it owned is lost, or another process's. It has a new epoch already, and no lease yet. */
  onEvicted(): void
  /** Redis may have lost keys: those that this process had written must be written again. */
  onKeysLost(): void
}

export type MembershipTimes = {
  tickMs: number
  /** A little less than two ticks, so that every second tick renews; after a failed renewal the next tick tries again. */
  renewMs: number
  /** How long the members need, after Redis has lost its keys, until all have written theirs again. */
  rebuildMs: number
  /** A process evicts others only after its own answers from Redis have come for this long without a pause. */
  steadyMs: number
  /** A tick that comes later than this means that the process was suspended. */
  maxTickDelayMs: number
}

const TIMES: MembershipTimes = { tickMs: 500, renewMs: 900, rebuildMs: 1_500, steadyMs: 4_000, maxTickDelayMs: 500 }

/**
 * This process as a member of the cluster: joins, renews its lease, lists the members and evicts those whose lease has run
 * out. The states and the reasons for the times are in `shared/broker/README.md` "Membership and leases".
 */
export class RedisMembership {
  readonly #deps: MembershipDeps
  readonly #handlers: MembershipHandlers
  readonly #times: MembershipTimes
  #timer: NodeJS.Timeout | undefined
  #lastSeenAt = now()
  #renewedAt = 0
  #keysLostAt = -Infinity
  #steadySince = 0
  #members: readonly Member[] = []
  #listing: Promise<void> | undefined
  #isTicking = false

  constructor(deps: MembershipDeps, handlers: MembershipHandlers, times: MembershipTimes = TIMES) {
    this.#deps = deps
    this.#handlers = handlers
    this.#times = times
  }

  get epoch(): number {
    return this.#deps.transport.epoch
  }

  /** Joins and keeps the lease from now on. When it resolves, the members have been listed once. */
  async start(): Promise<void> {
    await this.#enter(() => {})
    this.#lastSeenAt = now()
    this.#steadySince = performance.now()
    await this.refreshMembers()
    this.#timer = setInterval(() => void this.#tick(), this.#times.tickMs)
  }

  /** Publishes a change of this process's fields at once, with a renewal of the lease. */
  async announce(): Promise<void> {
    await this.#renew()
  }

  /** Lists the members now. Calls during a listing share its result. */
  async refreshMembers(): Promise<void> {
    this.#listing ??= this.#list().finally(() => {
      this.#listing = undefined
    })
    await this.#listing
  }

  /** Lists the members again if this epoch is higher than all known ones: that process may have just joined. */
  async discover(epoch: number): Promise<void> {
    if (this.#members.every((known) => known.epoch < epoch)) await this.refreshMembers()
  }

  /** Asks Redis whether this epoch is a member; the list of this process may be older. */
  isMember(epoch: number): Promise<boolean> {
    return this.#deps.members.isMember(epoch)
  }

  /** Whether this process is a member whose lease has not run out. */
  isAlive(epoch: number): boolean {
    return this.#members.some((member) => member.epoch === epoch && !isLapsed(member))
  }

  /** Returns `false` while the members write their keys again after Redis has lost them. */
  async isRebuilt(): Promise<boolean> {
    // Read first: while this call waits, a renewal may set #keysLostAt and make the marker current.
    const isCurrent = await this.#deps.members.isBootMarkerCurrent()
    return isCurrent && performance.now() - this.#keysLostAt > this.#times.rebuildMs
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#deps.members.leave(this.epoch).catch(() => {}) // Without Redis the lease runs out by itself.
  }

  /** Joins and subscribes, and only then holds a lease: a process without a subscription must not stay a member. */
  async #enter(onEntered: () => void): Promise<void> {
    const { transport, members, lease, describe } = this.#deps
    const requestedAt = now()
    const epoch = await members.join(describe())
    try {
      await transport.enter(epoch)
    } catch (cause) {
      await members.leave(epoch).catch(() => {}) // Its lease runs out.
      throw cause
    }
    onEntered()
    this.#renewedAt = requestedAt.monotonic
    lease.renewed(requestedAt)
  }

  async #tick(): Promise<void> {
    this.#checkForPause()
    if (this.#isTicking) return
    this.#isTicking = true
    try {
      if (performance.now() - this.#renewedAt >= this.#times.renewMs) {
        await this.#renew()
        this.#deps.transport.sendBeat()
      }
      await this.refreshMembers()
    } catch {
      this.#steadySince = performance.now() // Redis is unreachable: this process cannot see who renews.
    } finally {
      this.#isTicking = false
    }
  }

  /**
   * While this process was suspended it did not see others renew, so it must not evict them for that time. When the whole machine
   * was, they could not renew either.
   */
  #checkForPause(): void {
    const seenAt = now()
    const { tickMs, maxTickDelayMs } = this.#times
    if (elapsedMs(this.#lastSeenAt, seenAt) > tickMs + maxTickDelayMs) this.#steadySince = seenAt.monotonic
    this.#lastSeenAt = seenAt
  }

  async #renew(): Promise<void> {
    const { transport, members, lease, describe } = this.#deps
    const requestedAt = now()
    const outcome = await members.renew(this.epoch, describe(), transport.nextProbe())
    if (outcome === 'evicted') return this.#rejoin()
    if (outcome === 'unheard') return transport.listenAgain() // The next tick renews.
    if (outcome === 'keys_lost') {
      this.#keysLostAt = requestedAt.monotonic
      this.#handlers.onKeysLost()
    }
    this.#renewedAt = requestedAt.monotonic
    lease.renewed(requestedAt)
    transport.resume()
  }

  async #rejoin(): Promise<void> {
    this.#deps.log.warn('this process was evicted from the cluster; it rejoins under a new epoch', {
      epoch: this.epoch,
    })
    await this.#enter(this.#handlers.onEvicted)
  }

  async #list(): Promise<void> {
    const { transport } = this.#deps
    const receivers = transport.receivers // Read first: a process that calls meanwhile may have joined after the list was made.
    const members = await this.#deps.members.list()
    this.#checkForPause() // Redis may have answered after a pause that no tick has seen yet.
    if (!members.some(({ epoch }) => epoch === this.epoch)) {
      // Redis has lost its keys, or this process was evicted: the list is no reason to evict anybody.
      this.#steadySince = performance.now()
      return
    }
    const listed = new Set(members.map(({ epoch }) => epoch))
    const isSteady = performance.now() - Math.max(this.#steadySince, this.#keysLostAt) >= this.#times.steadyMs
    const isMissing = (epoch: number) => !listed.has(epoch)
    const isAnyGone =
      [...receivers, ...this.#members.map(({ epoch }) => epoch)].some(isMissing) || members.some(isLapsed)
    // A list of a Redis that may have lost keys is no reason to evict anybody, either.
    const canEvict = isSteady && isAnyGone && (await this.#deps.members.isBootMarkerCurrent())
    if (canEvict) {
      await this.#expireLapsed(members)
      for (const epoch of receivers) if (isMissing(epoch)) this.#removeMember(epoch) // It left, or another process evicted it.
    }
    const missing = canEvict ? [] : this.#members.filter(({ epoch }) => isMissing(epoch))
    this.#members = [...members, ...missing].filter(({ epoch }) => !transport.isLost(epoch))
    transport.setMembers(this.#members)
    this.#handlers.onMembers(this.#members)
  }

  async #expireLapsed(members: readonly Member[]): Promise<void> {
    for (const { epoch } of members.filter(isLapsed)) {
      if (await this.#deps.members.expire(epoch)) this.#removeMember(epoch)
    }
  }

  #removeMember(epoch: number): void {
    this.#deps.transport.removeMember(epoch)
    this.#handlers.onMemberLost(epoch)
  }
}

const isLapsed = ({ expiresInMs }: Member): boolean => expiresInMs <= 0
