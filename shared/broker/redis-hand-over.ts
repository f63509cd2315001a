import type { TenantId } from '../tenant.ts'
import { Calls, packCall } from './calls.ts'
import type { Member } from './members.ts'
import { BY_WORKER, RECORD, type ReceivedRecord, record } from './records.ts'
import type { RedisNode } from './redis-node.ts'
import type { Owners } from './redis-owners.ts'
import { Workers } from './workers.ts'

export type HandedSession = { readonly tenant: TenantId; readonly id: string; readonly state: unknown }

/** Passes sessions of a draining worker to the workers they belong to without it (design §4.8). */
export class HandOver {
  readonly #node: () => RedisNode
  readonly #owners: Owners
  readonly #calls = new Calls()
  readonly #others = new Workers()

  constructor(node: () => RedisNode, owners: Owners) {
    this.#node = node
    this.#owners = owners
  }

  onMembers(members: readonly Member[]): void {
    const mine = this.#node().epoch
    this.#others.update(members.filter(({ epoch }) => epoch !== mine))
  }

  onRecord({ type, stream, body }: ReceivedRecord): void {
    if (type === RECORD.reply) this.#calls.settle(stream, body)
  }

  onGone(epoch: number): void {
    this.#calls.abandon(epoch)
  }

  /**
   * The new owner has the whole state before the owner key names it. Returns whether somebody has taken the session;
   * throws `unavailable` when nobody answers.
   */
  async pass({ tenant, id, state }: HandedSession): Promise<boolean> {
    const node = this.#node()
    const to = this.#others.ownerOf(`${tenant} ${id}`)
    if (to === undefined) return false
    await this.#call(to, 'adoptSession', [state])
    if (await this.#owners.pass(tenant, id, { from: node.epoch, to })) return true
    await this.#call(to, 'deleteSession', [tenant, id]) // It was deleted meanwhile.
    return true
  }

  #call(epoch: number, method: string, args: unknown[]): Promise<unknown> {
    const body = packCall({ method, args })
    const outbox = this.#node().outbox('worker', epoch)
    const send = (id: number) => outbox.send(record(RECORD.call, { stream: id, flags: BY_WORKER, body }))
    return this.#calls.make({ epoch, send })
  }
}
