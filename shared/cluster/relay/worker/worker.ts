import { setTimeout as sleep } from 'node:timers/promises'
import { within } from '../../../kernel/async/deadline.ts'
import { AppError, notFound } from '../../../kernel/errors.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { Inbox } from '../../commands/inbox.ts'
import type { SessionSummary } from '../../commands/sessions.ts'
import type { Member } from '../../members/members.ts'
import { AdoptedRuns } from '../../owners/adopted-runs.ts'
import { HeldClaims, type HeldSession, type OwnClaims } from '../../owners/held-claims.ts'
import { ClusterMember, type ClusterPorts, type MemberDeps, type MemberRole } from '../member.ts'
import type { MemberReadiness } from '../membership.ts'
import { announceMoves } from '../notices.ts'
import type { ClusterWorker, OwnedSession } from './cluster-worker.ts'
import { SessionHandoff } from './handoff.ts'
import { inherit } from './inherit.ts'
import { RelayInbox, type SessionMethods, workerMethods } from './relay-inbox.ts'

/** How long a draining worker waits until another worker can take its sessions. */
const SUCCESSOR_MS = 2_000
/** Sessions that no worker has accepted are offered again after this time. */
const OFFER_AGAIN_MS = 1_000
/** This long before the drain ends, runs in the middle of a turn are left to others, too. */
const HASTE_MS = 5_000

type WorkerPorts = Omit<ClusterPorts, 'permissions'>

/** A worker of the cluster: gateways' calls reach its inbox, and its runs' frames reach the gateways. */
export class WorkerRelay<S extends OwnedSession> {
  readonly #ports: WorkerPorts
  readonly #worker: ClusterWorker<S>
  readonly #deps: MemberDeps
  readonly #claims: HeldClaims<S>
  readonly #adoptedRuns: AdoptedRuns
  readonly #member: ClusterMember
  readonly #inbox: RelayInbox
  readonly #handoff: SessionHandoff
  #members: readonly Member[] = []
  #onMembersChanged = () => {}

  constructor(ports: WorkerPorts, worker: ClusterWorker<S>, deps: MemberDeps) {
    this.#ports = ports
    this.#worker = worker
    this.#deps = deps
    this.#member = new ClusterMember(ports, deps, this.#role())
    this.#claims = new HeldClaims({
      owners: ports.owners,
      epoch: () => this.epoch,
      sessions: () => worker.sessions(),
      isAlive: (epoch) => this.#member.membership.isAlive(epoch),
      isGone: (epoch) => this.#member.transport.isLost(epoch),
      find: (session) => worker.find(session),
      isDraining: () => worker.isDraining(),
      drop: (session) => worker.release(session),
    })
    this.#adoptedRuns = new AdoptedRuns({
      movedRuns: ports.movedRuns,
      epoch: () => this.epoch,
      isKnown: (tenant, runId) => worker.knowsRun(tenant, runId),
    })
    const methods: SessionMethods = {
      createSession: (_from, ...args) => this.#create(...args),
      adoptSession: (from, state) => this.#adopt(from, state as S['state']),
      inheritSessions: (from, lost, sessions) => {
        if (worker.isDraining() || !deps.lease.isHeld()) throw alsoDraining()
        return inherit({ lost, from }, sessions, { membership: this.#member.membership, claims: this.#claims, worker })
      },
    }
    this.#inbox = new RelayInbox(this.#member.transport, (follow) => workerMethods(worker.inbox, methods, follow))
    this.#handoff = new SessionHandoff({
      transport: this.#member.transport,
      membership: this.#member.membership,
      onProblem: (cause) => this.#report(cause),
    })
  }

  get epoch(): number {
    return this.#member.epoch
  }

  /** May be called again after it has failed. */
  async join(): Promise<void> {
    await this.#member.membership.start()
    this.#claims.start()
  }

  readiness(): MemberReadiness {
    return this.#member.readiness()
  }

  /** The claims on sessions that this worker opens from the store. */
  get claims(): OwnClaims {
    return this.#claims
  }

  /** Records that these runs, which another worker had, are here now. */
  async recordMoved(tenant: TenantId, runIds: readonly string[]): Promise<void> {
    await this.#claims.untilAnswered(() => this.#adoptedRuns.add(tenant, runIds))
    announceMoves(this.#ports.bus, runIds, this.epoch)
  }

  /**
   * Leaves the ring, lets runs end for `graceMs`, and transfers each session to another worker once its current run has ended, or
   * can continue there. Within that time it serves the readers of ended runs as usual.
   */
  async drain(graceMs: number): Promise<void> {
    const until = performance.now() + graceMs
    this.#worker.holdQueues()
    const ended = this.#worker.drain(graceMs)
    await this.#member.membership.announce().catch((cause: unknown) => this.#report(cause)) // The drain continues even if this fails.
    const leaving = [...this.#worker.sessions(), ...this.#worker.oneShots()]
    if (leaving.length > 0) await this.#handoff.waitForSuccessor(SUCCESSOR_MS)
    const hasten = () => leaving.forEach((session) => session.hasten())
    const timer = setTimeout(hasten, graceMs - Math.min(HASTE_MS, graceMs / 3))
    const outcomes = await Promise.allSettled(leaving.map((session) => this.#transferUntil(until, session)))
    clearTimeout(timer)
    for (const outcome of outcomes) if (outcome.status === 'rejected') this.#report(outcome.reason)
    await ended
    await this.#serveReaders(until - performance.now())
    await this.#member.transport.flush()
  }

  async stop(): Promise<void> {
    this.#claims.close()
    await this.#member.membership.stop()
  }

  #role(): MemberRole {
    const worker = this.#worker
    return {
      name: 'worker',
      isDraining: () => worker.isDraining(),
      load: () => worker.liveRuns(),
      onRecord: (from, received) => {
        this.#inbox.onRecord(from, received)
        this.#handoff.onRecord(received)
      },
      onMembers: (all) => {
        this.#handoff.onMembers(all)
        this.#members = all
        this.#onMembersChanged()
      },
      onMemberLost: (epoch) => this.#handoff.onMemberLost(epoch),
      onEvicted: () => worker.abortAll(),
      onKeysLost: () => {
        this.#claims.claimAll()
        this.#claims.untilAnswered(() => this.#adoptedRuns.recordAll()).catch(() => {}) // This worker has left meanwhile.
      },
    }
  }

  /** Creates a session under the claim that a gateway has made for this worker. */
  async #create(...args: Parameters<Inbox['createSession']>): Promise<SessionSummary> {
    const [tenant, id, token] = args
    const { inbox } = this.#worker
    const session = { tenant, id, token }
    const summary = await this.#createOrRestore(session, args)
    if (await this.#claims.confirm(session).catch(() => false)) return summary
    await inbox.deleteSession(tenant, id, token).catch(() => {}) // Another worker has the claim by now.
    throw new AppError('unavailable', 'the session could not be created; try again', { retryAfterSecs: 1 })
  }

  async #createOrRestore(session: HeldSession, args: Parameters<Inbox['createSession']>): Promise<SessionSummary> {
    try {
      return await this.#worker.inbox.createSession(...args)
    } catch (cause) {
      await this.#claims.restore(session)
      throw cause
    }
  }

  /** Takes over the session of a draining worker. This worker has the whole state before the claim names it. */
  async #adopt(from: number, state: S['state']): Promise<void> {
    if (this.#worker.isDraining() || !this.#deps.lease.isHeld()) throw alsoDraining()
    if (await this.#claims.isReplaced(state)) throw goneSession()
    const session = this.#worker.adopt(state)
    const runIds = session.waiting.map(({ run }) => run.id)
    if (!(await this.#claims.takeOver(session, from))) {
      this.#worker.release(session)
      throw goneSession()
    }
    this.#worker.keep(session)
    await this.recordMoved(session.tenant, runIds)
  }

  /** Transfers a session. A session that was not accepted is offered again as long as there is time and a worker that accepts sessions. */
  async #transferUntil(until: number, session: S): Promise<void> {
    for (;;) {
      await this.#transfer(session)
      const mayComeLater = this.#handoff.hasSuccessor || session.isBusy
      const isOver = performance.now() + OFFER_AGAIN_MS > until || !mayComeLater
      if (isOver || this.#worker.find(session) !== session) return
      await sleep(OFFER_AGAIN_MS)
    }
  }

  async #transfer(session: S): Promise<void> {
    await session.rest()
    if (this.#worker.find(session) !== session) return // The session was deleted meanwhile, or its one-shot run has ended.
    if (session.isBusy) return this.#leave(session)
    if (await this.#handoff.transfer(session)) return this.#worker.release(session)
    if (await this.#claims.takeBack(session)) return this.#worker.keep(session)
    if (await this.#restoreLostClaim(session)) return this.#transfer(session)
    this.#worker.release(session) // Another worker has the session, although its answer did not come.
  }

  /** Leaves a session with its current run to a worker that opens it from the store. */
  async #leave(session: S): Promise<void> {
    const isStored = await this.#worker.drainRuns(session)
    const isTaken = isStored && (await this.#handoff.leave(session))
    if (isTaken) this.#worker.leave(session)
    else if (this.#worker.find(session) === session) this.#worker.keep(session)
  }

  /** Returns whether Redis had only lost this worker's claim, which is now restored. */
  async #restoreLostClaim(session: S): Promise<boolean> {
    const isRebuilt = await this.#claims.untilAnswered(() => this.#member.membership.isRebuilt())
    return !isRebuilt && this.#worker.find(session) === session && this.#claims.claimAgain(session)
  }

  /** Waits until this worker is no longer needed for its runs: each was read to its end and recorded, or there is no gateway. */
  async #serveReaders(withinMs: number): Promise<void> {
    const isOver = new AbortController()
    const { promise: noGateway, resolve } = Promise.withResolvers<void>()
    this.#onMembersChanged = () => {
      if (!this.#members.some(({ role }) => role === 'gateway')) resolve()
    }
    this.#onMembersChanged()
    await within(Math.max(0, withinMs), Promise.race([noGateway, this.#worker.runsServed(isOver.signal)]))
    isOver.abort()
  }

  #report(cause: unknown): void {
    this.#deps.log.error('a session could not be handed over', { cause })
  }
}

const goneSession = () => notFound('the session was deleted, or another worker has taken it over')

const alsoDraining = () => new AppError('unavailable', 'this worker is draining too', { code: 'worker_draining' })
