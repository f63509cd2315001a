import type { TenantId } from '../../kernel/tenant.ts'
import { FairQueue, type QueuedCall } from '../room/fair-queue.ts'
import { limitsOfCustomer, NO_LIMITS, type TenantLimits, weightOfCustomer } from '../tenant-config/config.ts'
import type { PlaceLimits, StartLine, WaitingStart } from './port.ts'

/** How many of a tenant's runs may be at work, and of those of this customer. */
export function placeLimits(limits: TenantLimits, customer: string | undefined): PlaceLimits {
  const tenant = limits.concurrent_runs
  if (customer === undefined) return { tenant, customer: null }
  if (customer === BATCH_ITEMS)
    return tenant === 1 ? { tenant, customer: 1, yields: true } : { tenant, customer: tenant && tenant - 1 }
  const own = limitsOfCustomer(limits, customer)
  return { tenant, customer: own?.concurrent_runs ?? null, weight: weightOfCustomer(limits, customer) }
}

/** Whose items of batches are counted as those of one customer, which leaves the others a place, or yields the only one (D55.2). The id of a customer has no control character. */
export const BATCH_ITEMS = '\nbatch'

type Queued = QueuedCall & { start: WaitingStart }

/** All starts of a tenant that wait, in the order of their turns: that of model calls at the providers (D52.2), in which each start counts as one. */
export function startsInOrder(
  tenant: TenantId,
  { now, starts, turnsOf, lowerAt }: StartLine,
  limits: TenantLimits = NO_LIMITS,
): WaitingStart[] {
  const weightOf = (customer: string) => weightOfCustomer(limits, customer)
  const queue = new FairQueue<Queued>((_tenant, customer = '') => weightOf(customer))
  const byAge = starts.toSorted((one, other) => one.since - other.since || (one.runId < other.runId ? -1 : 1))
  for (const start of byAge) queue.push({ tenant, caller: start, tokens: 1, start }, Math.max(start.since, lowerAt))
  for (const [customer, turns] of turnsOf)
    queue.charge({ tenant, caller: { priority: 'normal', customer }, tokens: 0 }, turns * weightOf(customer))
  const order: WaitingStart[] = []
  for (let next = queue.next(now); next; next = queue.next(now)) {
    queue.take(next.call, now)
    order.push(next.call.start)
  }
  return order
}

export type Standing = {
  start: WaitingStart
  /** 1 for the first of those for which there is no room; 0 for those that may begin. */
  place: number
  /** There is room for it now, beside those before it. */
  mayBegin: boolean
  /** `undefined`: it is not known how long runs take. */
  waitMs: number | undefined
}

/** Where each start stands. One whose customer has no room holds up no other customer. */
export function standings(order: readonly WaitingStart[], line: StartLine, limits: TenantLimits): Standing[] {
  const free = new Free(line.atWork)
  const freeOf = new Map<string | undefined, Free>()
  let waiting = 0
  return order.map((start) => {
    const { customer } = start
    const { tenant, customer: ofCustomer, yields = false } = placeLimits(limits, customer)
    const own = freeOf.get(customer) ?? new Free(line.atWorkOf.get(customer ?? '') ?? 0)
    freeOf.set(customer, own)
    const mayBegin = free.has(tenant) && own.has(ofCustomer) && !(yields && line.isKeptFree)
    if (mayBegin) {
      free.taken++
      own.taken++
      return { start, place: 0, mayBegin, waitMs: 0 }
    }
    waiting++
    own.waiting++
    const runs = Math.max(waiting / (tenant ?? Infinity), own.waiting / (ofCustomer ?? Infinity))
    return { start, place: waiting, mayBegin, waitMs: msFor(runs, line.runMs) }
  })
}

/** How long it takes until this many runs have ended one after the other; `undefined` if it is not known how long one takes. */
const msFor = (runs: number, runMs: number): number | undefined => (runMs > 0 ? Math.ceil(runs * runMs) : undefined)

class Free {
  taken: number
  waiting = 0

  constructor(taken: number) {
    this.taken = taken
  }

  has(limit: number | null): boolean {
    return limit === null || this.taken < limit
  }
}

/** While it is not known how long runs take. */
export const UNKNOWN_SECS = 5
const MAX_SECS = 3_600

/** When a start that is refused may come back: as long as it would have waited behind the others. */
export function retryAfterSecs({ waiting, runMs }: { waiting: number; runMs: number }, limit: number): number {
  const ms = msFor((waiting + 1) / limit, runMs)
  return ms === undefined ? UNKNOWN_SECS : Math.min(MAX_SECS, Math.max(1, Math.ceil(ms / 1_000)))
}
