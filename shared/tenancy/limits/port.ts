import type { Priority } from '../../agent/providers/port.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Prioritised } from '../room/fair-queue.ts'

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

/** A run among those of its tenant, and of its customer. */
export type PlacedRun = { tenant: TenantId; runId: string; customer?: string | undefined }

/**
 * How many runs may be at work at the same time; `null` for any number. `weight`: the share of the customer in the turns; 1 unless given. `yields`: its
 * customer has no room while a place is kept free (`keepFree`).
 */
export type PlaceLimits = { tenant: number | null; customer: number | null; weight?: number; yields?: boolean }

/**
 * `full` are the tenant's places, or the customer's; `behind`: there is room, but others wait. `waiting`: of a tenant with one place, without those that
 * yield to this start. `runMs`: how long the tenant's runs take of late; 0 for unknown.
 */
export type TakenPlace = { place: 'taken' | 'full' | 'customer_full' | 'behind'; waiting: number; runMs: number }

/** A start that waits for a place, at the process that has its run. `since` is a time of the clock of whoever counts the places: Redis, or this process. */
export type WaitingStart = Prioritised & { runId: string; process: string; since: number }

/** All starts of a tenant that wait. */
export type StartLine = {
  now: number
  starts: readonly WaitingStart[]
  /** The places that are taken: of the tenant, and of the customers that were asked for. */
  atWork: number
  atWorkOf: ReadonlyMap<string, number>
  /** By customer: the turns that it has had since it began to wait, divided by its weight. One that begins to wait starts with the least number of those that wait already. */
  turnsOf: ReadonlyMap<string, number>
  /** When the last start that is not interactive had its turn; 0 for none. */
  lowerAt: number
  runMs: number
  /** No start that yields may begin. */
  isKeptFree: boolean
}

/** What a process tells of its starts that wait: those that the places do not know, with how long they have waited, and those that wait no more. */
export type LineNews = {
  process: string
  joined: readonly (Omit<WaitingStart, 'process' | 'since'> & { waitedMs: number })[]
  left: readonly string[]
  /** The customers whose places are asked for. */
  customers: readonly string[]
}

/**
 * The places of a tenant's runs among its concurrent runs, and the line of the starts that wait for one. A place is held for a while and then free
 * again, unless it is renewed; the starts of a process that has not looked at the line for a while have left it. Every method throws `unavailable`
 * when the places cannot be reached.
 */
export interface RunPlaces {
  /** Takes a place for the run, unless others wait or the limit is reached; a run that has one keeps it. `turn`: it waits, and it is its turn. */
  take(run: PlacedRun, limits: PlaceLimits, turn?: Priority): Promise<TakenPlace>
  /** Holds the places of these runs, also those that have been lost. `customer` is named where its runs are limited, too. */
  renew(tenant: TenantId, runs: readonly PlacedRun[]): Promise<void>
  /** `ranMs`: how long the run took that had the place. */
  release(run: PlacedRun, ranMs?: number): Promise<void>
  /** Keeps a place of the tenant free for so long: no start that yields takes one. */
  keepFree(tenant: TenantId, ms: number): Promise<void>
  count(tenant: TenantId): Promise<number>
  look(tenant: TenantId, news: LineNews): Promise<StartLine>
  /** Whether the start is in the line. */
  isWaiting(tenant: TenantId, runId: string): Promise<boolean>
}

/** The usual time of recent runs, after one more has taken `ranMs`. */
export const usualMs = (before: number | undefined, ranMs: number): number =>
  Math.round(before ? 0.8 * before + 0.2 * ranMs : ranMs)

/** A process that has not looked at the line for this long has no start in it. */
export const LOOKED_MS = 5_000

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
  /** The name of the budget among those of the tenant: `2026-11-22`, or `2026-11 c-42` for the month of a customer. */
  name: string
  /** The name of the hold among those of all processes. */
  id: string
  /** What the holder has spent by now, and what it had spent when the store last answered. */
  own: { now: Spent; told: Spent }
  /** What the whole period is known to have cost at least, for a store that has lost its count. */
  known: Spent
  /** `Infinity` where there is no limit. */
  limit: Held
  /** Three sums, each with the one before: of the calls at work, of the next call, and of a reserve for later ones, which saves requests. */
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
