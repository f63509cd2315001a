import type { Priority } from '../../agent/providers/port.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Prioritised } from '../room/fair-queue.ts'

export type Spent = { tokens: number; costUsd: number }

export const NOTHING_SPENT: Spent = { tokens: 0, costUsd: 0 }

/** Adds up what was spent. The sum is capped to a number that JSON and every store can keep, so that a huge amount is not lost. */
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

/** A run that takes a place among those of its tenant and its customer. */
export type PlacedRun = { tenant: TenantId; runId: string; customer?: string | undefined }

/**
 * How many runs may run at the same time; `null` for any number. `weight`: the share of the customer in the turns; 1 unless given. `yields`: its
 * customer has no room while a place is kept free (`keepFree`).
 */
export type PlaceLimits = { tenant: number | null; customer: number | null; weight?: number; yields?: boolean }

/**
 * `full`: the tenant's places are taken; `customer_full`: the customer's; `behind`: there is room, but others wait. `waiting` does not count starts
 * that yield to this one, if the tenant has one place. `runMs`: how long the tenant's recent runs took; 0 for unknown.
 */
export type TakenPlace = { place: 'taken' | 'full' | 'customer_full' | 'behind'; waiting: number; runMs: number }

/**
 * A start that waits for a place, at the process that has its run. `since` is a time on the clock that counts the
 * places: that of Redis, or of this process.
 */
export type WaitingStart = Prioritised & { runId: string; process: string; since: number }

/** All starts of a tenant that wait. */
export type StartLine = {
  now: number
  starts: readonly WaitingStart[]
  /** The taken places of the tenant, and of the requested customers. */
  atWork: number
  atWorkOf: ReadonlyMap<string, number>
  /**
   * By customer: the turns that it has had since it began to wait, divided by its weight. A customer that begins to
   * wait starts with the least number of those already waiting.
   */
  turnsOf: ReadonlyMap<string, number>
  /** When the last start that is not interactive had its turn; 0 for none. */
  lowerAt: number
  runMs: number
  /** No start that yields may begin. */
  isKeptFree: boolean
}

/** A process's report about its waiting starts: those that are new, with the time that they have waited so far, and those that no longer wait. */
export type LineNews = {
  process: string
  joined: readonly (Omit<WaitingStart, 'process' | 'since'> & { waitedMs: number })[]
  left: readonly string[]
  /** The customers whose places are asked for. */
  customers: readonly string[]
}

/**
 * The places of a tenant's runs among its concurrent runs, and the line of the starts that wait for one. A place is held for a while and then free
 * again, unless it is renewed; if a process has not checked the queue for a while, its starts are removed from it. Every method throws `unavailable`
 * when the places cannot be reached.
 */
export interface RunPlaces {
  /**
   * Takes a place for the run, unless others wait or the limit is reached; a run that has one keeps it. `turn`: the run
   * was waiting and it is its turn.
   */
  take(run: PlacedRun, limits: PlaceLimits, turn?: Priority): Promise<TakenPlace>
  /** Renews the places of these runs, also lost ones. `customer` is set if its runs are limited, too. */
  renew(tenant: TenantId, runs: readonly PlacedRun[]): Promise<void>
  /** `ranMs`: how long the run took. */
  release(run: PlacedRun, ranMs?: number): Promise<void>
  /** Keeps a place of the tenant free for this time: starts that yield do not take it. */
  keepFree(tenant: TenantId, ms: number): Promise<void>
  count(tenant: TenantId): Promise<number>
  look(tenant: TenantId, news: LineNews): Promise<StartLine>
  /** Whether the start is in the line. */
  isWaiting(tenant: TenantId, runId: string): Promise<boolean>
}

/** The usual time of recent runs, after one more has taken `ranMs`. */
export const usualMs = (before: number | undefined, ranMs: number): number =>
  Math.round(before ? 0.8 * before + 0.2 * ranMs : ranMs)

/** If a process has not checked the queue for this long, its starts are removed from it. */
export const LOOKED_MS = 5_000

/** How long a place is held: longer than a flow may wait for an executor. */
export const PLACE_MS = 45_000

/** The reserved part of a budget, or its limits. `calls` is the number of concurrent calls, which is not spent. */
export type Held = Spent & { calls: number }

export const NOTHING_HELD: Held = { ...NOTHING_SPENT, calls: 0 }

const DAY = /^\d{4}-\d{2}-\d{2}(?: |$)/

/** Whether a budget is that of a day; the others are of a month. */
export const isDay = (name: string): boolean => DAY.test(name)

/** A request to reserve a part of one budget for the process's model calls. */
export type HoldRequest = {
  /** The name of the budget among those of the tenant: `2026-11-22`, or `2026-11 c-42` for the month of a customer. */
  name: string
  /** The name of the hold among those of all processes. */
  id: string
  /** The holder's spending now, and at the store's last answer. */
  own: { now: Spent; told: Spent }
  /** The known minimum of the period's spending, in case the store has lost its count. */
  known: Spent
  /** `Infinity` where there is no limit. */
  limit: Held
  /** Three sums, each including the one before: of the running calls, of the next call, and of a reserve for later calls, which saves requests. */
  hold: { atWork: Held; next: Held; reserve: Held }
}

/**
 * `granted`: the amount that is now reserved, or why only that of the running calls is: another budget lacks room (`kept`), this one
 * does (`lacking`), only the limit of concurrent calls is reached (`busy`), or it is used up (`none`). `spent`: the spending of all
 * processes.
 */
export type HoldAnswer = { granted: 'reserve' | 'next' | 'kept' | 'lacking' | 'busy' | 'none'; spent: Spent }

/** The processes' reservations in the budgets. Each lasts `HOLD_MS` after its last request. */
export interface BudgetHolds {
  /** One atomic step over all these budgets: the next call is granted by all or by none. Throws `unavailable` when the holds cannot be reached. */
  ask(tenant: TenantId, requests: readonly HoldRequest[]): Promise<HoldAnswer[]>
}

/** The reservations of a dead process end after this time. */
export const HOLD_MS = 30_000
