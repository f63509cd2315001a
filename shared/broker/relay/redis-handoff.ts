import type { TenantId } from '../../tenant.ts'
import type { Member } from '../placement/members.ts'
import type { Owners } from '../placement/owners.ts'
import { isDraining, isSilent } from '../placement/session-router.ts'
import { Workers } from '../placement/workers.ts'
import { type CallLimits, Calls, packCall } from './calls.ts'
import { BY_WORKER, RECORD, type ReceivedRecord, record } from './records.ts'
import type { RedisNode } from './redis-node.ts'

export type TransferableSession = { readonly tenant: TenantId; readonly id: string; readonly state: unknown }

/** So many sessions are on their way at a time: Redis cuts off who has more than 32 MB to read. */
const LANES = 8
/** A session may be megabytes: sending it again and again would hinder itself. */
const LIMITS: CallLimits = { deadlineMs: 5_000, againMs: 1_000 }

/** Passes sessions of a draining worker to the workers they belong to without it (design §4.8). */
export class SessionHandoff {
  readonly #node: () => RedisNode
  readonly #owners: Owners
  readonly #calls = new Calls()
  readonly #others = new Workers()
  #onNews = () => {}
  readonly #lanes: Promise<unknown>[] = []
  #passed = 0

  constructor(node: () => RedisNode, owners: Owners) {
    this.#node = node
    this.#owners = owners
  }

  onMembers(members: readonly Member[]): void {
    const mine = this.#node().epoch
    this.#others.update(members.filter(({ epoch }) => epoch !== mine))
    this.#onNews()
  }

  onRecord({ type, stream, body }: ReceivedRecord): void {
    if (type === RECORD.reply) this.#calls.settle(stream, body)
  }

  onGone(epoch: number): void {
    this.#calls.abandon(epoch)
  }

  /** Somebody is there to pass sessions to, or nobody comes: who takes this one's place may be still on its way. */
  async ready(withinMs: number): Promise<void> {
    await this.#node()
      .refreshMembers()
      .catch(() => {}) // Redis is away: it is looked again, as ever.
    if (this.#others.eligible.length > 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onNews = () => {
      if (this.#others.eligible.length > 0) resolve()
    }
    const timer = setTimeout(resolve, withinMs)
    await promise
    clearTimeout(timer)
  }

  /**
   * The new owner has the whole state before the owner key names it. Returns whether somebody has taken the session;
   * throws `unavailable` when nobody answers.
   */
  transfer(session: TransferableSession): Promise<boolean> {
    const lane = this.#passed++ % LANES
    const before = this.#lanes[lane] ?? Promise.resolve()
    const passed = before.then(() => this.#pass(session))
    this.#lanes[lane] = passed.catch(() => {})
    return passed
  }

  async #pass({ tenant, id, state }: TransferableSession): Promise<boolean> {
    const node = this.#node()
    const to = await this.#adopter(`${tenant} ${id}`, state)
    if (to === undefined) return false
    if (await this.#owners.transfer(tenant, id, { from: node.epoch, to })) return true
    await this.#call(to, 'deleteSession', [tenant, id]) // It was deleted meanwhile.
    return true
  }

  /** Who has taken it: the one it belongs to, or the next when that is leaving too, or dead. */
  async #adopter(key: string, state: unknown): Promise<number | undefined> {
    const first = this.#others.ownerOf(key)
    for (const to of [first, this.#others.ownerOf(key, first)]) {
      if (to === undefined) return undefined
      try {
        await this.#call(to, 'adoptSession', [state])
        return to
      } catch (cause) {
        if (!isDraining(cause) && !isSilent(cause)) throw cause
      }
    }
    return undefined
  }

  #call(epoch: number, method: string, args: unknown[]): Promise<unknown> {
    const body = packCall({ method, args })
    const outbox = this.#node().outbox('worker', epoch)
    const send = (id: number) => outbox.send(record(RECORD.call, { stream: id, flags: BY_WORKER, body }))
    return this.#calls.make({ epoch, send, limits: LIMITS })
  }
}
