import type { TenantId } from '../../tenant.ts'
import type { Member } from '../placement/members.ts'
import type { Owners } from '../placement/owners.ts'
import { isDraining, isUnanswered } from '../placement/session-router.ts'
import { Workers } from '../placement/workers.ts'
import { type CallArgs, type CallLimits, Calls, packCall, type WorkerMethod } from './calls.ts'
import { BY_WORKER, RECORD, type ReceivedRecord, record } from './records.ts'
import type { RedisMembership } from './redis-membership.ts'
import type { RedisTransport } from './redis-transport.ts'

export type TransferableSession = { readonly tenant: TenantId; readonly id: string; readonly state: unknown }

export type HandoffDeps = {
  transport: Pick<RedisTransport, 'outbox'>
  membership: Pick<RedisMembership, 'epoch' | 'refreshMembers'>
  owners: Owners
}

/** At most this many sessions are transferred at a time: Redis disconnects a subscriber with more than 32 MB unread. */
const SLOTS = 8
/** A session may be megabytes large, so it is not sent again as soon as other calls are. */
const LIMITS: CallLimits = { deadlineMs: 5_000, resendMs: 1_000 }

/** Transfers the sessions of a draining worker to the workers they hash to without it. */
export class SessionHandoff {
  readonly #deps: HandoffDeps
  readonly #calls = new Calls()
  readonly #others = new Workers()
  readonly #slots: Promise<unknown>[] = []
  #transferCount = 0
  #onMembersChanged = () => {}

  constructor(deps: HandoffDeps) {
    this.#deps = deps
  }

  onMembers(members: readonly Member[]): void {
    const { epoch: own } = this.#deps.membership
    this.#others.update(members.filter(({ epoch }) => epoch !== own))
    this.#onMembersChanged()
  }

  onRecord({ type, stream, body }: ReceivedRecord): void {
    if (type === RECORD.reply) this.#calls.settle(stream, body)
  }

  onMemberLost(epoch: number): void {
    this.#calls.failAll(epoch)
  }

  /** Resolves when another worker takes new work, or after `withinMs`: this worker's replacement may not have joined yet. */
  async waitForSuccessor(withinMs: number): Promise<void> {
    await this.#deps.membership.refreshMembers().catch(() => {}) // Redis is unreachable: the next tick lists them again.
    if (this.#others.eligible.length > 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onMembersChanged = () => {
      if (this.#others.eligible.length > 0) resolve()
    }
    const timer = setTimeout(resolve, withinMs)
    await promise
    clearTimeout(timer)
  }

  /**
   * Transfers a session. The new owner has the whole state before the claim names it. Returns whether a worker has taken the
   * session; throws `unavailable` when none answers.
   */
  transfer(session: TransferableSession): Promise<boolean> {
    const slot = this.#transferCount++ % SLOTS
    const before = this.#slots[slot] ?? Promise.resolve()
    const transferred = before.then(() => this.#transferNow(session))
    this.#slots[slot] = transferred.catch(() => {})
    return transferred
  }

  async #transferNow({ tenant, id, state }: TransferableSession): Promise<boolean> {
    const to = await this.#findAdopter(`${tenant} ${id}`, state)
    if (to === undefined) return false
    const { membership, owners } = this.#deps
    if (await owners.transfer(tenant, id, { from: membership.epoch, to })) return true
    await this.#call(to, 'deleteSession', [tenant, id]) // The session was deleted meanwhile.
    return true
  }

  /** Returns the worker that has adopted the session: the one it hashes to, or the next if that one drains or does not answer. */
  async #findAdopter(key: string, state: unknown): Promise<number | undefined> {
    const first = this.#others.ownerOf(key)
    for (const to of [first, this.#others.ownerOf(key, first)]) {
      if (to === undefined) return undefined
      try {
        await this.#call(to, 'adoptSession', [state])
        return to
      } catch (cause) {
        if (!isDraining(cause) && !isUnanswered(cause)) throw cause
      }
    }
    return undefined
  }

  async #call<M extends WorkerMethod>(epoch: number, method: M, args: CallArgs<M>): Promise<void> {
    const body = packCall(method, args)
    const outbox = this.#deps.transport.outbox('worker', epoch)
    const send = (id: number) => outbox.send(record(RECORD.call, { stream: id, flags: BY_WORKER, body }))
    await this.#calls.call({ epoch, send, limits: LIMITS })
  }
}
