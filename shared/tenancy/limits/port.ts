import type { TenantId } from '../../kernel/tenant.ts'

export type Spent = { tokens: number; costUsd: number }

export const NOTHING_SPENT: Spent = { tokens: 0, costUsd: 0 }

/** Adds up what was spent. A sum stays a number that JSON and every store keep, so that no amount makes a budget forget it. */
export const addSpent = (one: Spent, other: Spent): Spent => ({
  tokens: capped(one.tokens + other.tokens),
  costUsd: capped(one.costUsd + other.costUsd),
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
