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

const capped = (sum: number) => Math.min(sum, Number.MAX_SAFE_INTEGER)

/** The cost of a tenant's model calls in a day, by process. Every method throws `unavailable` when the store does not answer. */
export interface SpendingStore {
  /** Replaces what this process has spent. `day` is such as `2026-11-22`. */
  put(tenant: TenantId, entry: { day: string; process: string; spent: Spent }): Promise<void>
  /** The sum over all processes but this one. */
  ofOthers(tenant: TenantId, entry: { day: string; process: string }): Promise<Spent>
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

/** A process asks to hold back a part of a tenant's budget for its model calls at work. */
export type HoldRequest = {
  day: string
  process: string
  /** What this process has spent in the day: now, and when it was last answered. */
  own: { now: Spent; told: Spent }
  /** What the whole day is known to have cost at least, for a store that has lost its count. */
  known: Spent
  /** `Infinity` where there is no limit. */
  limit: Spent
  /** What the calls at work hold; with them the next call; and with both a reserve for later ones, which saves requests. */
  hold: { atWork: Spent; next: Spent; reserve: Spent }
}

/** `granted`: which part of the hold counts from now on. `spent`: of all processes. */
export type HoldAnswer = { granted: keyof HoldRequest['hold'] | 'none'; spent: Spent }

/** What the processes hold back of the budgets, each for at most `HOLD_MS` after its last request. */
export interface BudgetHolds {
  /** One atomic step. Throws `unavailable` when the holds cannot be reached. */
  ask(tenant: TenantId, request: HoldRequest): Promise<HoldAnswer>
}

/** A process that died holds nothing back after this time. */
export const HOLD_MS = 30_000
