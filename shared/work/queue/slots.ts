import type { TenantId } from '../../kernel/tenant.ts'
import { type ShareLimits, TenantShares } from '../../platform/fairness/tenant-shares.ts'

export type SlotLimits = ShareLimits

/** The slot of one running job. */
export type Slot = {
  /** Aborted when the job should end at its next step and wait again, because its tenant is above its share and others lack slots. */
  readonly giveWay: AbortSignal
  /** To be called once the job is over; further calls do nothing. */
  leave(): void
}

type Held = { tenant: TenantId; asked: AbortController }

/** The most jobs that may run at the same time, extra slots included. */
export const mostSlots = ({ max, maxPerTenant }: SlotLimits): number => 2 * max - Math.min(max, maxPerTenant)

/**
 * The slots of one kind of jobs in this process. The rule (README.md beside this file): a tenant may hold all slots, but its slots
 * above its share do not count against a tenant below its share, which gets an extra slot instead. For each slot beyond `max`, the
 * latest job above its tenant's share is asked to give way.
 */
export class Slots {
  readonly #max: number
  readonly #share: number
  readonly #used: TenantShares
  /** In the order in which they began. */
  readonly #held = new Set<Held>()
  /** Slots within their tenants' shares. */
  #within = 0

  constructor(limits: SlotLimits) {
    this.#max = limits.max
    this.#share = Math.min(limits.max, limits.maxPerTenant)
    this.#used = new TenantShares(limits)
  }

  /** Whether only a tenant below its share could begin a further job, in an extra slot. */
  get isFull(): boolean {
    return this.#held.size >= this.#max
  }

  /** Whether any tenant may begin two further jobs. */
  get hasTwoFree(): boolean {
    return this.#held.size + 2 <= this.#max
  }

  /** Whether no tenant could begin a further job, whatever it holds and however much memory there is. */
  get areAllTaken(): boolean {
    return this.#within >= this.#max
  }

  /** Whether the tenant comes after those that are below their shares. */
  hasShare(tenant: TenantId): boolean {
    return this.#used.exceedsShare(tenant, 1)
  }

  /** The tenants that have their shares. */
  *tenantsWithShare(): Iterable<TenantId> {
    const tenants = new Set([...this.#held].map(({ tenant }) => tenant))
    for (const tenant of tenants) if (this.hasShare(tenant)) yield tenant
  }

  /**
   * Takes a slot, or returns `undefined` when there is none for this tenant. `mayGrow`: whether an extra slot may be opened. If a
   * tenant below its share gets none, another tenant's job is asked to give way.
   */
  take(tenant: TenantId, mayGrow: () => boolean): Slot | undefined {
    if (this.isFull) {
      if (this.areAllTaken || this.hasShare(tenant)) return undefined
      this.#askToGiveWay(this.#held.size + 1 - this.#max)
      if (!mayGrow()) return undefined
    }
    return this.#add({ tenant, asked: new AbortController() })
  }

  #add(held: Held): Slot {
    const { tenant, asked } = held
    this.#used.add(tenant, 1)
    this.#held.add(held)
    if (this.#used.usedBy(tenant) <= this.#share) this.#within++
    const leave = () => {
      if (!this.#held.delete(held)) return
      if (this.#used.usedBy(tenant) <= this.#share) this.#within--
      this.#used.add(tenant, -1)
    }
    return { giveWay: asked.signal, leave }
  }

  /** Makes sure that `count` jobs have been asked, or all those above the shares: the ones begun last are asked first. */
  #askToGiveWay(count: number): void {
    const kept = new Map<TenantId, number>()
    let missing = count
    for (const held of this.#held) {
      const ofTenant = kept.get(held.tenant) ?? 0
      kept.set(held.tenant, ofTenant + (isAsked(held) ? 0 : 1))
      missing -= isAsked(held) ? 1 : 0
    }
    for (const held of [...this.#held].toReversed()) {
      if (missing <= 0) return
      const ofTenant = kept.get(held.tenant) ?? 0
      if (isAsked(held) || ofTenant <= this.#share) continue
      kept.set(held.tenant, ofTenant - 1)
      missing--
      held.asked.abort()
    }
  }
}

const isAsked = ({ asked }: Held): boolean => asked.signal.aborted
