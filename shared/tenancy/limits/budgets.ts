import { randomUUID } from 'node:crypto'
import { AppError } from '../../kernel/errors.ts'
import type { Log } from '../../kernel/log.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { isoTime } from '../../kernel/time.ts'
import { type Limits } from '../tenant-config/config.ts'
import type { KnownLimits } from './known-limits.ts'
import { addSpent, NOTHING_SPENT, type SpendingStore, type Spent } from './port.ts'

export type BudgetsDeps = {
  limits: Pick<KnownLimits, 'of'>
  store: SpendingStore
  log: Log
  now?: () => Date
  /** How often this process's spending is written, and how old the sum of the others may be. */
  everyMs?: number
}

/** Why no model may be called for a tenant. `retryAfterSecs`: until the next day begins, or until the store may answer again. */
export type BudgetRefusal = {
  code: 'budget_exhausted' | 'storage_unavailable'
  message: string
  reason: keyof Limits | 'budget_unknown' | 'budget_reserved'
  retryAfterSecs: number
}

/** A tenant's day: its limits, `Infinity` where there is none, and what it has cost as far as this process knows. */
export type Standing = { day: string; limit: Spent; known: Spent }

/** Throws `rate_limit` when the tenant's budget is used up, and `unavailable` while what is left of it cannot be read. */
export async function assertBudget(budgets: Pick<Budgets, 'refusal'>, tenant: TenantId): Promise<void> {
  const refusal = await budgets.refusal(tenant)
  if (!refusal) return
  const { code, message, retryAfterSecs } = refusal
  throw new AppError(code === 'budget_exhausted' ? 'rate_limit' : 'unavailable', message, { code, retryAfterSecs })
}

const EVERY_MS = 1_000
const STORE_RETRY_SECS = 2

/** The spending of a tenant in one day. `own` is this process's part, `others` the rest as it was read at `readAt`. */
type Day = { tenant: TenantId; day: string; own: Spent; others: Spent | undefined; readAt: number; isDirty: boolean }

/**
 * Counts the tokens and dollars of each tenant's day. A process writes its part each second and reads those of the others as often;
 * what is spent meanwhile is known to the holds (`Reservations`).
 */
export class Budgets {
  readonly #deps: BudgetsDeps
  readonly #now: () => Date
  readonly #everyMs: number
  readonly #process = randomUUID()
  readonly #days = new Map<string, Day>()
  readonly #timer: NodeJS.Timeout
  #flushing: Promise<void> | undefined

  constructor(deps: BudgetsDeps) {
    this.#deps = deps
    this.#now = deps.now ?? (() => new Date())
    this.#everyMs = deps.everyMs ?? EVERY_MS
    this.#timer = setInterval(() => void this.#flush(), this.#everyMs).unref()
  }

  /** `undefined` when the tenant's models may be called. */
  async refusal(tenant: TenantId): Promise<BudgetRefusal | undefined> {
    const standing = await this.standing(tenant)
    return standing && ('code' in standing ? standing : this.exhausted(standing, standing.known))
  }

  /** Where the tenant's day stands. `undefined` when it has no budget. */
  async standing(tenant: TenantId): Promise<Standing | BudgetRefusal | undefined> {
    const limits = await readable(this.#deps.limits.of(tenant))
    if (!limits) return UNKNOWN
    const { tokens_per_day: tokens, usd_per_day: costUsd } = limits
    if (tokens === null && costUsd === null) return undefined
    const day = this.#dayOf(tenant)
    const known = await readable(this.#spent(day))
    const limit = { tokens: tokens ?? Number.POSITIVE_INFINITY, costUsd: costUsd ?? Number.POSITIVE_INFINITY }
    return known ? { day: day.day, known, limit } : UNKNOWN
  }

  /** The refusal of a day in which so much was spent, or `undefined`. */
  exhausted({ limit }: Pick<Standing, 'limit'>, { tokens, costUsd }: Spent): BudgetRefusal | undefined {
    if (tokens >= limit.tokens) return this.#usedUp(`${limit.tokens} tokens`, 'tokens_per_day')
    if (costUsd >= limit.costUsd) return this.#usedUp(`${limit.costUsd} US dollars`, 'usd_per_day')
    return undefined
  }

  spend(tenant: TenantId, spent: Spent): void {
    const day = this.#dayOf(tenant)
    day.own = addSpent(day.own, spent)
    day.isDirty = true
  }

  /** The tenant's spending today. Throws `unavailable` when the store does not answer. */
  async today(tenant: TenantId): Promise<Spent & { resetsAt: Date }> {
    return { ...(await this.#spent(this.#dayOf(tenant))), resetsAt: endOfDay(this.#now()) }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#flushing
    await this.#flush()
  }

  #usedUp(budget: string, reason: keyof Limits): BudgetRefusal {
    const [now, resetsAt] = [this.#now(), endOfDay(this.#now())]
    return {
      code: 'budget_exhausted',
      message: `the budget of ${budget} a day is used up; it begins anew at ${resetsAt.toISOString()}`,
      reason,
      retryAfterSecs: Math.ceil((resetsAt.getTime() - now.getTime()) / 1000),
    }
  }

  #dayOf(tenant: TenantId): Day {
    const day = isoTime(this.#now().getTime()).slice(0, 'yyyy-mm-dd'.length)
    const key = `${day} ${tenant}`
    const known = this.#days.get(key)
    if (known) return known
    const fresh: Day = {
      tenant,
      day,
      own: NOTHING_SPENT,
      others: undefined,
      readAt: Number.NEGATIVE_INFINITY,
      isDirty: false,
    }
    this.#days.set(key, fresh)
    return fresh
  }

  /** While the store is away the last sum counts. Throws when there is none. */
  async #spent(day: Day): Promise<Spent> {
    if (performance.now() - day.readAt > this.#everyMs) {
      const reading = this.#deps.store.ofOthers(day.tenant, { day: day.day, process: this.#process })
      const others = await reading.catch((cause: unknown) => {
        if (!day.others) throw cause
        return day.others
      })
      day.others = others
      day.readAt = performance.now()
    }
    return addSpent(day.own, day.others ?? NOTHING_SPENT)
  }

  async #flush(): Promise<void> {
    this.#flushing ??= this.#writeAll().finally(() => {
      this.#flushing = undefined
    })
    await this.#flushing
  }

  async #writeAll(): Promise<void> {
    const today = isoTime(this.#now().getTime()).slice(0, 'yyyy-mm-dd'.length)
    for (const [key, entry] of this.#days) {
      if (entry.isDirty) await this.#write(entry)
      if (!entry.isDirty && entry.day !== today) this.#days.delete(key)
    }
  }

  async #write(entry: Day): Promise<void> {
    const { tenant, day, own: spent } = entry
    entry.isDirty = false
    try {
      await this.#deps.store.put(tenant, { day, process: this.#process, spent })
    } catch (cause) {
      entry.isDirty = true
      this.#deps.log.debug("a tenant's spending could not be stored; it is tried again", { cause })
    }
  }
}

/** `undefined` while the store does not answer. */
async function readable<T>(reading: T | Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch {
    return undefined
  }
}

const UNKNOWN: BudgetRefusal = {
  code: 'storage_unavailable',
  message: 'what is left of the budget cannot be read at the moment',
  reason: 'budget_unknown',
  retryAfterSecs: STORE_RETRY_SECS,
}

function endOfDay(now: Date): Date {
  const end = new Date(now)
  end.setUTCHours(24, 0, 0, 0)
  return end
}
