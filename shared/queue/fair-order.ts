import type { TenantId } from '../tenant.ts'
import type { StoredJob } from './port.ts'

/**
 * Jobs that wait, in the order in which they are taken: by rounds, and within a round as they came. A tenant's job gets the round after
 * that of its job before, and none earlier than that of the job taken last. So a tenant that comes anew is next, and the tenants that
 * wait take turns (start-time fair queueing).
 */
export class FairOrder {
  readonly #rounds = new Map<number, Map<string, StoredJob>>()
  readonly #roundOf = new Map<string, number>()
  readonly #lastOf = new Map<TenantId, number>()
  #round = 0

  get size(): number {
    return this.#roundOf.size
  }

  /** When the job was added that has waited longest, in milliseconds since 1970; `undefined` when none waits. */
  get oldestAt(): number | undefined {
    let oldest: number | undefined
    for (const round of this.#rounds.values())
      for (const { addedAt } of round.values()) oldest = Math.min(addedAt, oldest ?? addedAt)
    return oldest
  }

  has(id: string): boolean {
    return this.#roundOf.has(id)
  }

  /** Changes nothing when the job waits already. */
  push(stored: StoredJob): void {
    const { id, tenant } = stored.job
    if (this.#roundOf.has(id)) return
    const number = Math.max(this.#round, (this.#lastOf.get(tenant) ?? -1) + 1)
    const round = this.#rounds.get(number) ?? new Map<string, StoredJob>()
    this.#rounds.set(number, round.set(id, stored))
    this.#roundOf.set(id, number)
    this.#lastOf.set(tenant, number)
  }

  take(): StoredJob | undefined {
    if (this.size === 0) return undefined
    for (;;) {
      const [next] = this.#rounds.get(this.#round)?.values() ?? []
      if (next) {
        this.remove(next.job.id)
        return next
      }
      this.#round++
    }
  }

  remove(id: string): void {
    const number = this.#roundOf.get(id)
    if (number === undefined) return
    this.#roundOf.delete(id)
    const round = this.#rounds.get(number)
    round?.delete(id)
    if (round?.size === 0) this.#rounds.delete(number)
    if (this.size === 0) this.#forgetEarlier()
  }

  /** Forgets the tenants whose last round is over: they are as those that come anew. */
  #forgetEarlier(): void {
    for (const [tenant, last] of this.#lastOf) if (last < this.#round) this.#lastOf.delete(tenant)
  }

  clear(): void {
    this.#rounds.clear()
    this.#roundOf.clear()
    this.#lastOf.clear()
  }
}
