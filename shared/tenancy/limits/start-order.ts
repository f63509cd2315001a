import type { TenantId } from '../../kernel/tenant.ts'
import { FairQueue, type QueuedCall } from '../room/fair-queue.ts'
import { limitsOfCustomer, NO_LIMITS, type TenantLimits, weightOfCustomer } from '../tenant-config/config.ts'
import type { PlaceLimits, StartLine, WaitingStart } from './port.ts'

/** How many runs of a tenant, and of this customer, may run at the same time. */
export function placeLimits(limits: TenantLimits, customer: string | undefined): PlaceLimits {
  const tenant = limits.concurrent_runs
  if (customer === undefined) return { tenant, customer: null }
  if (customer === BATCH_ITEMS)
    return tenant === 1 ? { tenant, customer: 1, yields: true } : { tenant, customer: tenant && tenant - 1 }
  const own = limitsOfCustomer(limits, customer)
  return { tenant, customer: own?.concurrent_runs ?? null, weight: weightOfCustomer(limits, customer) }
}

/**
 * All batch items count as runs of this pseudo-customer, which leaves a place for others, or yields the only one
 * (D55.2). The id of a customer has no control character.
 */
export const BATCH_ITEMS = '\nbatch'

type Queued = QueuedCall & { start: WaitingStart }

/**
 * All waiting starts of a tenant in the order of their turns: the same order as for model calls at the providers
 * (D52.2), with each start counting as one.
 */
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
  /** 1 for the first start without room; 0 for starts that may begin. */
  place: number
  /** There is room for it now, beside those before it. */
  mayBegin: boolean
  /** `undefined`: it is not known how long runs take. */
  waitMs: number | undefined
}

/** Where each start stands. A start whose customer has no room does not delay other customers. */
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

/** The time until this many runs have ended one after the other; `undefined` if it is not known how long one takes. */
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

/** Used while the duration of runs is unknown. */
export const UNKNOWN_SECS = 5
const MAX_SECS = 3_600

/** When a refused start may be tried again: after the time that it would have waited. */
export function retryAfterSecs({ waiting, runMs }: { waiting: number; runMs: number }, limit: number): number {
  const ms = msFor((waiting + 1) / limit, runMs)
  return ms === undefined ? UNKNOWN_SECS : Math.min(MAX_SECS, Math.max(1, Math.ceil(ms / 1_000)))
}
