import type { Log } from '../../kernel/log.ts'
import type { Lease } from '../members/lease.ts'
import { MemberWatch } from '../members/member-watch.ts'
import { LEASE_MS, type Member, type MemberFields, type Members } from '../members/members.ts'
import { type MembershipTimes, TIMES } from '../members/membership-times.ts'
import { elapsedMs, type Moment, now } from '../members/moment.ts'
import { Steadiness } from '../members/steadiness.ts'
import type { Transport } from './wire/transport.ts'

export type MembershipDeps = {
  transport: Transport
  members: Members
  lease: Lease
  log: Log
  /** The fields that this process publishes; read before each renewal. */
  describe(): MemberFields
}

export type MembershipHandlers = {
  /** Called when the members have changed or were listed; not for new loads. */
  onMembers(members: readonly Member[]): void
  /** Called when a member has left or was evicted: it will send nothing more. */
  onMemberLost(epoch: number): void
  /** Called when this process was evicted: it owns nothing any more. It already has a new epoch, but no lease yet. */
  onEvicted(): void
  /** Called when Redis may have lost keys: this process must write its keys again. */
  onKeysLost(): void
}

/** Tells a load balancer whether the process can serve requests. A process that cannot renew its lease is not a member. */
export type MemberReadiness = { isBusAway: boolean; isMember: boolean; isDraining: boolean }

/**
 * This process as a member of the cluster: joins, renews its lease, and watches the other members. The states and the reasons for the
 * times are in `shared/cluster/README.md` "Membership and leases".
 */
export class Membership {
  readonly #deps: MembershipDeps
  readonly #handlers: MembershipHandlers
  readonly #times: MembershipTimes
  readonly #steadiness: Steadiness
  readonly #watch: MemberWatch
  #timer: NodeJS.Timeout | undefined
  #renewedAt: Moment = { monotonic: 0, wall: 0 }
  #keysLostAt = -Infinity
  /** Before this time a renewal gives no lease. */
  #mayActFrom = -Infinity
  #isTicking = false

  constructor(deps: MembershipDeps, handlers: MembershipHandlers, times: MembershipTimes = TIMES) {
    const { transport, members, describe } = deps
    this.#deps = deps
    this.#handlers = handlers
    this.#times = times
    this.#steadiness = new Steadiness(times)
    this.#watch = new MemberWatch({
      members,
      peers: transport,
      steadiness: this.#steadiness,
      own: () => this.epoch,
      needsLoads: () => describe().role === 'gateway',
      onMembers: (all) => {
        transport.setMembers(all)
        handlers.onMembers(all)
      },
      onMemberLost: (epoch) => handlers.onMemberLost(epoch),
    })
  }

  get epoch(): number {
    return this.#deps.transport.epoch
  }

  /**
   * Joins and keeps the lease from now on. When it resolves, the members have been listed once. It may be called again after it has
   * failed.
   */
  async start(): Promise<void> {
    if (this.epoch === 0) await this.#enter(() => {})
    this.#steadiness.check()
    this.#steadiness.reset()
    await this.#watch.start()
    this.#timer = setInterval(() => void this.#tick(), this.#times.tickMs)
  }

  /** Publishes a change of this process's fields at once, with a renewal of the lease. */
  async announce(): Promise<void> {
    await this.#renew()
  }

  /** Lists the members now if they have changed. Simultaneous calls share the result. */
  refreshMembers(): Promise<void> {
    return this.#watch.refresh()
  }

  /** Refreshes the members if this epoch is higher than all known ones: that process may have just joined. */
  discover(epoch: number): Promise<void> {
    return this.#watch.discover(epoch)
  }

  /** Asks Redis whether this epoch is a member; what this process knows may be older. */
  isMember(epoch: number): Promise<boolean> {
    return this.#deps.members.isMember(epoch)
  }

  /** Whether this process is a member whose lease has not run out. */
  isAlive(epoch: number): boolean {
    return this.#watch.isAlive(epoch)
  }

  /** Returns `false` while the members write their keys again after Redis has lost them. */
  async isRebuilt(): Promise<boolean> {
    // Read first: while this call waits, a renewal may set #keysLostAt and make the marker current.
    const isCurrent = await this.#deps.members.isBootMarkerCurrent()
    const sinceMs = performance.now() - this.#keysLostAt
    // A worker may have been suspended when Redis lost its keys. It is removed after that time at the latest.
    const mayComeBack = sinceMs < LEASE_MS + this.#times.steadyMs && this.#watch.awaitsWorker()
    return isCurrent && sinceMs > this.#times.rebuildMs && !mayComeBack
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
      await members.leave(epoch).catch(() => {}) // If this fails, its lease runs out.
      throw cause
    }
    onEntered()
    this.#renewedAt = requestedAt
    lease.renewed(requestedAt)
  }

  async #tick(): Promise<void> {
    this.#steadiness.check()
    if (this.#isTicking) return
    this.#isTicking = true
    const beganAt = performance.now()
    try {
      if (performance.now() - this.#renewedAt.monotonic >= this.#times.renewMs) {
        await this.#renew()
        this.#deps.transport.sendBeat()
      }
      await this.#watch.tick()
    } catch {
      this.#steadiness.reset() // Redis is unreachable: this process cannot see who renews.
      // No process can write its keys again meanwhile, so the time for that starts again.
      if (beganAt - this.#keysLostAt <= this.#times.rebuildMs) this.#keysLostAt = performance.now()
    } finally {
      this.#isTicking = false
    }
  }

  async #renew(): Promise<void> {
    const { transport, members, lease, describe } = this.#deps
    const requestedAt = now()
    const { outcome, version } = await members.renew(this.epoch, describe(), transport.nextProbe())
    if (outcome === 'evicted') return this.#rejoin()
    if (outcome === 'unheard') return transport.resubscribe() // The next tick renews.
    if (outcome === 'keys_lost') {
      this.#keysLostAt = requestedAt.monotonic
      this.#steadiness.reset()
      this.#watch.onRegistered()
      this.#handlers.onKeysLost()
    }
    // Others may have evicted this process before Redis lost the eviction. By the next tick they have removed it again, or it stays a member.
    const mayBeEvicted = outcome === 'keys_lost' && elapsedMs(this.#renewedAt, requestedAt) >= LEASE_MS
    if (mayBeEvicted) this.#mayActFrom = requestedAt.monotonic + this.#times.tickMs
    this.#renewedAt = requestedAt
    if (requestedAt.monotonic < this.#mayActFrom) return
    lease.renewed(requestedAt)
    transport.resume()
    if (outcome === 'renewed') this.#watch.onRenewed(version)
  }

  async #rejoin(): Promise<void> {
    this.#deps.log.warn('this process was evicted from the cluster; it rejoins under a new epoch', {
      epoch: this.epoch,
    })
    await this.#enter(this.#handlers.onEvicted)
    this.#watch.onRegistered()
  }
}
