import { PRIORITIES, type Priority } from '../../agent/providers/port.ts'
import type { TenantId } from '../../kernel/tenant.ts'

export type Prioritised = { priority: Priority; customer?: string | undefined }

/** A call that waits for its turn. `tokens`: its estimate. */
export type QueuedCall = { tenant: TenantId; caller: Prioritised; tokens: number }

/** While lower priorities wait, one of their calls gets a turn at least this often. */
const LIFT_MS = 5_000

type Lines<T> = Record<Priority, Set<T>>

/** How much one tenant or customer waits for, and how much it has been served, in tokens divided by its weight. */
type Share<T> = { served: number; weight: number; waiting: number; at: Lines<T> }
type TenantShare<T> = {
  served: number
  weight: number
  customers: Map<string, Share<T>>
  waiting: Record<Priority, number>
}

/** The share of a tenant among those that wait, or of a customer among those of its tenant. */
export type WeightOf = (tenant: TenantId, customer?: string) => number

/** Above this number, the counts of tenants and customers without waiting calls are forgotten. */
const MAX_SHARES = 10_000

/**
 * The virtual token counter (Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024) at two levels: the next turn goes to the waiting
 * tenant that was served least, and there to the customer that was served least. A tenant that begins to wait starts with the count of the least
 * served waiting one, so that nobody saves up turns. Interactive calls come first, then normal ones, then batches. It has no clock and no side
 * effects.
 */
export class FairQueue<T extends QueuedCall> {
  readonly #tenants = new Map<TenantId, TenantShare<T>>()
  readonly #weightOf: WeightOf
  #size = 0
  #lowerServedAt = Number.NEGATIVE_INFINITY

  constructor(weightOf: WeightOf = () => 1) {
    this.#weightOf = weightOf
  }

  get size(): number {
    return this.#size
  }

  /** The sum of the waiting tenants' weights. */
  get weight(): number {
    let sum = 0
    for (const tenant of this.#tenants.values()) if (waits(tenant)) sum += tenant.weight
    return sum
  }

  push(call: T, now: number): void {
    const { tenant: id, caller } = call
    if (this.#size === 0) this.#lowerServedAt = now
    const tenant = this.#tenants.get(id) ?? { served: 0, weight: 1, customers: new Map(), waiting: counts() }
    tenant.weight = Math.max(this.#weightOf(id), MIN_WEIGHT)
    if (!waits(tenant)) tenant.served = Math.max(tenant.served, least(this.#tenants.values(), waits))
    this.#tenants.set(id, tenant)
    const name = nameOf(call)
    const customer = tenant.customers.get(name) ?? { served: 0, weight: 1, waiting: 0, at: lines<T>() }
    if (name !== '') customer.weight = Math.max(this.#weightOf(id, name), MIN_WEIGHT)
    if (customer.waiting === 0)
      customer.served = Math.max(
        customer.served,
        least(tenant.customers.values(), ({ waiting }) => waiting > 0),
      )
    tenant.customers.set(name, customer)
    customer.at[caller.priority].add(call)
    customer.waiting++
    tenant.waiting[caller.priority]++
    this.#size++
  }

  /** The call whose turn it is, without removing it. `isFirst`: it also comes before the calls of other processes. */
  next(now: number): { call: T; isFirst: boolean } | undefined {
    if (this.#size === 0) return undefined
    const [call, lower] = PRIORITIES.flatMap((priority) => this.#nextOf(priority) ?? [])
    if (!call) return undefined
    const isInteractive = call.caller.priority === 'interactive'
    const isLifted = isInteractive && lower !== undefined && now - this.#lowerServedAt >= LIFT_MS
    return isLifted ? { call: lower, isFirst: true } : { call, isFirst: isInteractive }
  }

  /** Takes a call of the queue that has its turn, and counts it. */
  take(call: T, now: number): void {
    if (call.caller.priority !== 'interactive') this.#lowerServedAt = now
    this.charge(call, call.tokens)
    this.remove(call)
  }

  /** Counts tokens that were used, beyond what was counted already. */
  charge(call: QueuedCall, tokens: number): void {
    const tenant = this.#tenants.get(call.tenant)
    const customer = tenant?.customers.get(nameOf(call))
    if (tenant) tenant.served += tokens / tenant.weight
    if (customer) customer.served += tokens / customer.weight
  }

  remove(call: T): void {
    const tenant = this.#tenants.get(call.tenant)
    const customer = tenant?.customers.get(nameOf(call))
    const { priority } = call.caller
    if (!tenant || !customer?.at[priority].delete(call)) return
    customer.waiting--
    tenant.waiting[priority]--
    this.#size--
    if (tenant.customers.size > MAX_SHARES) forget(tenant.customers, ({ waiting }) => waiting > 0)
    if (this.#tenants.size > MAX_SHARES) forget(this.#tenants, waits)
  }

  #nextOf(priority: Priority): T | undefined {
    const tenant = leastServed(this.#tenants.values(), ({ waiting }) => waiting[priority] > 0)
    const customer = tenant && leastServed(tenant.customers.values(), ({ at }) => at[priority].size > 0)
    return customer?.at[priority].values().next().value
  }
}

const MIN_WEIGHT = 0.01

const nameOf = ({ caller }: QueuedCall) => caller.customer ?? ''

const counts = (): Record<Priority, number> => ({ interactive: 0, normal: 0, batch: 0 })
const lines = <T>(): Lines<T> => ({ interactive: new Set(), normal: new Set(), batch: new Set() })

const waits = <T>({ waiting }: TenantShare<T>): boolean => PRIORITIES.some((priority) => waiting[priority] > 0)

function leastServed<S extends { served: number }>(shares: Iterable<S>, isMeant: (share: S) => boolean): S | undefined {
  let found: S | undefined
  for (const share of shares) if (isMeant(share) && (!found || share.served < found.served)) found = share
  return found
}

const least = <S extends { served: number }>(shares: Iterable<S>, isMeant: (share: S) => boolean): number =>
  leastServed(shares, isMeant)?.served ?? 0

function forget<K, S>(shares: Map<K, S>, isKept: (share: S) => boolean): void {
  for (const [key, share] of shares) if (!isKept(share)) shares.delete(key)
}
