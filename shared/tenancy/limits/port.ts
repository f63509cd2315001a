import type { TenantId } from '../../kernel/tenant.ts'

export type Spent = { tokens: number; costUsd: number }

export const NOTHING_SPENT: Spent = { tokens: 0, costUsd: 0 }

/** Adds up what was spent. A sum stays a number that JSON and every store keep, so that no amount makes a budget forget it. */
export const addSpent = (one: Spent, other: Spent): Spent => ({
  tokens: capped(one.tokens + other.tokens),
  costUsd: capped(one.costUsd + other.costUsd),
})

export const lessSpent = (one: Spent, other: Spent): Spent => ({
  tokens: one.tokens - other.tokens,
  costUsd: one.costUsd - other.costUsd,
})

export const addHeld = (one: Held, other: Held): Held => ({ ...addSpent(one, other), calls: one.calls + other.calls })

export const lessHeld = (one: Held, other: Held): Held => ({ ...lessSpent(one, other), calls: one.calls - other.calls })

const capped = (sum: number) => Math.min(sum, Number.MAX_SAFE_INTEGER)

/** What a tenant's model calls have cost in a period, and those of each customer with a budget of its own, by process. Every method throws `unavailable` when the store does not answer. */
export interface SpendingStore {
  /** Replaces what this process has spent. `day` is the name of a budget, such as `2026-11-22`. */
  put(tenant: TenantId, entry: { day: string; process: string; spent: Spent }): Promise<void>
  /** The sum over all processes but this one. */
  ofOthers(tenant: TenantId, entry: { day: string; process: string }): Promise<Spent>
  /** Calls `act` unless `what` is noted in this period, and then notes it. Whether this process is the one that has noted it. */
  once(tenant: TenantId, entry: { day: string; what: string }, act: () => Promise<void>): Promise<boolean>
}

/**
 * The places of a tenant's runs among its concurrent runs. A place is held for a while and then free again, unless it is renewed.
 * Every method throws `unavailable` when the places cannot be reached.
 */
export interface RunPlaces {
  /** Takes a place for the run. Returns `false` when the tenant's runs hold `limit` places already; a run that has one keeps it. */
  take(tenant: TenantId, runId: string, limit: number): Promise<boolean>
  /** Holds the places of these runs, also those that have been lost. */
  renew(tenant: TenantId, runIds: readonly string[]): Promise<void>
  release(tenant: TenantId, runId: string): Promise<void>
  count(tenant: TenantId): Promise<number>
}

/** How long a place is held: longer than a flow may wait for an executor. */
export const PLACE_MS = 45_000

/** What calls hold of a budget, and its limits: `calls` are those at work at the same time, which nobody spends. */
export type Held = Spent & { calls: number }

export const NOTHING_HELD: Held = { ...NOTHING_SPENT, calls: 0 }

const DAY = /^\d{4}-\d{2}-\d{2}(?: |$)/

/** Whether a budget is that of a day; the others are of a month. */
export const isDay = (name: string): boolean => DAY.test(name)

/** A part of one budget that a process asks to hold back for its model calls at work. */
export type HoldRequest = {
  /** Of the budget, among those of the tenant: `2026-11-22`, or `2026-11 c-42` for the month of a customer. */
  name: string
  /** Of the hold, among those of all processes. */
  id: string
  /** What the holder has spent: now, and when it was last answered. */
  own: { now: Spent; told: Spent }
  /** What the whole period is known to have cost at least, for a store that has lost its count. */
  known: Spent
  /** `Infinity` where there is no limit. */
  limit: Held
  /** What the calls at work hold; with them the next call; and with both a reserve for later ones, which saves requests. */
  hold: { atWork: Held; next: Held; reserve: Held }
}

/**
 * `granted`: the hold that counts from now on, or why it is that of the calls at work: another budget lacks room (`kept`), this one does
 * (`lacking`), only a place among the calls at work does (`busy`), or it is used up (`none`). `spent`: of all processes.
 */
export type HoldAnswer = { granted: 'reserve' | 'next' | 'kept' | 'lacking' | 'busy' | 'none'; spent: Spent }

/** What the processes hold back of the budgets, each for at most `HOLD_MS` after its last request. */
export interface BudgetHolds {
  /** One atomic step over all these budgets: the next call is granted by all or by none. Throws `unavailable` when the holds cannot be reached. */
  ask(tenant: TenantId, requests: readonly HoldRequest[]): Promise<HoldAnswer[]>
}

/** A process that died holds nothing back after this time. */
export const HOLD_MS = 30_000
