import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { Metrics } from '../../metrics.ts'
import type { Lease } from '../placement/lease.ts'
import type { MemberFields } from '../placement/members.ts'
import type { Owners } from '../placement/owners.ts'
import { createRedisMembers } from '../placement/redis-members.ts'
import { createRedisOwners } from '../placement/redis-owners.ts'
import type { Inbox } from '../port.ts'
import type { RedisLink } from '../redis-link.ts'
import type { Readiness } from './redis-gateway.ts'
import { SessionHandoff, type TransferableSession } from './redis-handoff.ts'
import { RedisInbox, workerMethods } from './redis-inbox.ts'
import { RedisMembership } from './redis-membership.ts'
import { RedisTransport } from './redis-transport.ts'

const CLAIM_ATTEMPTS = 10
const CLAIM_RETRY_MS = 500
/** Claims are repeated every hour and expire after a day. */
const REFRESH_MS = 3_600_000
/** How long a draining worker waits until another worker can take its sessions. */
const SUCCESSOR_MS = 2_000

export type OwnedSession = TransferableSession & {
  /** Resolves when no run of the session is live. */
  settled(): Promise<void>
}

/** The worker that the relay connects to the cluster. */
export type ClusterWorker<S extends OwnedSession> = {
  inbox: Inbox
  liveRuns(): number
  isDraining(): boolean
  drain(graceMs: number): Promise<void>
  sessions(): Iterable<S>
  adopt(state: S['state']): void
  /** Drops a session that another worker owns now. */
  release(session: S): void
  /** Ends all runs and drops all sessions: this process was evicted and owns none of them any more. */
  abortAll(): void
}

export type WorkerRelayDeps = { pid: number; lease: Lease; log: Log; metrics: Metrics }

/** A worker of the cluster: gateways' calls reach its inbox, and its runs' frames reach the gateways. */
export class WorkerRelay<S extends OwnedSession> {
  readonly #link: RedisLink
  readonly #worker: ClusterWorker<S>
  readonly #deps: WorkerRelayDeps
  readonly #owners: Owners
  readonly #transport: RedisTransport
  readonly #membership: RedisMembership
  readonly #inbox: RedisInbox
  readonly #handoff: SessionHandoff
  #refresh: NodeJS.Timeout | undefined

  constructor(link: RedisLink, worker: ClusterWorker<S>, deps: WorkerRelayDeps) {
    this.#link = link
    this.#worker = worker
    this.#deps = deps
    this.#owners = createRedisOwners(link)
    this.#transport = this.#createTransport()
    this.#membership = this.#createMembership()
    const adopt = (state: unknown) => this.#adopt(state)
    this.#inbox = new RedisInbox(this.#transport, (follow) => workerMethods(worker.inbox, adopt, follow))
    this.#handoff = new SessionHandoff({
      transport: this.#transport,
      membership: this.#membership,
      owners: this.#owners,
    })
  }

  get epoch(): number {
    return this.#membership.epoch
  }

  async join(): Promise<void> {
    this.#refresh = setInterval(() => this.#claimAll(), REFRESH_MS)
    await this.#membership.start()
  }

  readiness(): Readiness {
    return { isRedisAway: this.#link.awayMs() > 0, isDraining: this.#worker.isDraining() }
  }

  /** Deletes the claim of a session that this worker has removed. */
  releaseClaim({ tenant, id }: Pick<S, 'tenant' | 'id'>): void {
    this.#owners.release(tenant, id, this.epoch).catch((cause: unknown) => this.#report(cause))
  }

  /** Leaves the ring, lets runs end for `graceMs`, and transfers each session to another worker once none of its runs is live. */
  async drain(graceMs: number): Promise<void> {
    const ended = this.#worker.drain(graceMs)
    await this.#membership.announce().catch((cause: unknown) => this.#report(cause)) // Runs end even if this fails.
    if (!isEmpty(this.#worker.sessions())) await this.#handoff.waitForSuccessor(SUCCESSOR_MS)
    const outcomes = await Promise.allSettled(Array.from(this.#worker.sessions(), (session) => this.#transfer(session)))
    for (const outcome of outcomes) if (outcome.status === 'rejected') this.#report(outcome.reason)
    await ended
    await this.#transport.flush()
  }

  async stop(): Promise<void> {
    clearInterval(this.#refresh)
    await this.#membership.stop()
  }

  #createTransport(): RedisTransport {
    const { lease, metrics } = this.#deps
    return new RedisTransport(
      { role: 'worker', link: this.#link, lease, metrics },
      {
        onRecord: (from, received) => {
          this.#inbox.onRecord(from, received)
          this.#handoff.onRecord(received)
        },
        // A gateway that is gone is noticed by its membership.
        onUndelivered: () => {},
      },
    )
  }

  #createMembership(): RedisMembership {
    const { lease, log } = this.#deps
    const members = createRedisMembers(this.#link)
    return new RedisMembership(
      { transport: this.#transport, members, lease, log, describe: () => this.#describe() },
      {
        onMembers: (all) => this.#handoff.onMembers(all),
        onMemberLost: (epoch) => this.#handoff.onMemberLost(epoch),
        onEvicted: () => this.#worker.abortAll(),
        onRedisEmptied: () => this.#claimAll(),
      },
    )
  }

  #describe(): MemberFields {
    return {
      role: 'worker',
      state: this.#worker.isDraining() ? 'draining' : 'active',
      load: this.#worker.liveRuns(),
      pid: this.#deps.pid,
    }
  }

  /** Takes over the session of a draining worker. */
  #adopt(state: S['state']): void {
    if (this.#worker.isDraining()) throw alsoDraining()
    this.#worker.adopt(state)
  }

  async #transfer(session: S): Promise<void> {
    await session.settled()
    if (await this.#handoff.transfer(session)) this.#worker.release(session)
  }

  #claimAll(): void {
    for (const session of this.#worker.sessions()) void this.#claimAgain(session)
  }

  /**
   * Repeats the claim of a session until Redis has it. After Redis has lost its keys a client may have created the session again
   * on another worker: then this worker drops it, so that the session has one owner.
   */
  async #claimAgain(session: S): Promise<void> {
    for (let attempt = 1; attempt <= CLAIM_ATTEMPTS; attempt++) {
      if (attempt > 1 && !Array.from(this.#worker.sessions()).includes(session)) return // It was deleted meanwhile.
      try {
        const owner = await this.#owners.claim(session.tenant, session.id, this.epoch)
        if (owner !== this.epoch) this.#worker.release(session)
        return
      } catch (cause) {
        if (attempt === CLAIM_ATTEMPTS) return this.#report(cause)
        await sleep(CLAIM_RETRY_MS)
      }
    }
  }

  #report(cause: unknown): void {
    this.#deps.log.error('a session could not be claimed, released or handed over in Redis', { cause })
  }
}

const alsoDraining = () => new AppError('unavailable', 'this worker is draining too', { code: 'worker_draining' })

const isEmpty = (items: Iterable<unknown>): boolean => items[Symbol.iterator]().next().done === true
