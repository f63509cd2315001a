import { randomUUID } from 'node:crypto'
import { AppError } from '../../kernel/errors.ts'
import type { Log } from '../../kernel/log.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { isoTime } from '../../kernel/time.ts'
import type { Limits, TenantLimits } from '../tenant-config/config.ts'
import type { KnownLimits } from './known-limits.ts'
import { budgetOf, budgetsOf, endOf, type Payer, type Standing, type Threshold, thresholdsReached } from './periods.ts'
import { addSpent, isDay, NOTHING_SPENT, type SpendingStore, type Spent } from './port.ts'

export type BudgetsDeps = {
  limits: Pick<KnownLimits, 'of'>
  store: SpendingStore
  /**
   * Announces a threshold (D53.1): `publish` may be repeated, also by another process, until it has succeeded; after
   * that one process calls `append`.
   */
  thresholds?: undefined | { publish(reached: Threshold): Promise<void>; append(reached: Threshold): void }
  log: Log
  now?: () => Date
  /** How often this process's spending is written, and how old the sum of the others may be. */
  everyMs?: number
}

/** The reason why no model may be called for a tenant. `retryAfterSecs`: until the next day begins, or until the store may answer again. */
export type BudgetRefusal = {
  code: 'budget_exhausted' | 'storage_unavailable'
  message: string
  reason: keyof Limits | 'usd_per_month' | 'budget_unknown' | 'budget_reserved'
  retryAfterSecs: number
}

/**
 * Throws `rate_limit` when the tenant's budget, or that of its customer, is used up, and `unavailable` while the rest
 * of the budget cannot be read.
 */
export async function assertBudget(
  budgets: Pick<Budgets, 'refusal'>,
  tenant: TenantId,
  customer?: string,
): Promise<void> {
  const refusal = await budgets.refusal(tenant, customer)
  if (!refusal) return
  const { code, message, retryAfterSecs } = refusal
  throw new AppError(code === 'budget_exhausted' ? 'rate_limit' : 'unavailable', message, { code, retryAfterSecs })
}

const EVERY_MS = 1_000
const STORE_RETRY_SECS = 2

/** The spending in one period of a budget. `own` is this process's part, `others` the rest as it was read at `readAt`. */
type Period = {
  tenant: TenantId
  name: string
  own: Spent
  others: Spent | undefined
  readAt: number
  isDirty: boolean
  /** The thresholds that are known to be announced. */
  announced: Set<string>
}

/**
 * Counts the tokens and dollars of each tenant's day, and of the customers that have budgets of their own. Every second a process writes its own part
 * and reads those of the others; spending in between is covered by the holds (`Reservations`).
 */
export class Budgets {
  readonly #deps: BudgetsDeps
  readonly #now: () => Date
  readonly #everyMs: number
  readonly #process = randomUUID()
  readonly #periods = new Map<string, Period>()
  readonly #timer: NodeJS.Timeout
  #flushing: Promise<void> | undefined

  constructor(deps: BudgetsDeps) {
    this.#deps = deps
    this.#now = deps.now ?? (() => new Date())
    this.#everyMs = deps.everyMs ?? EVERY_MS
    this.#timer = setInterval(() => void this.#flush(), this.#everyMs).unref()
  }

  /** `undefined` when the tenant's models may be called, for its customer if there is one. */
  async refusal(tenant: TenantId, customer?: string): Promise<BudgetRefusal | undefined> {
    const standings = await this.standings({ tenant, customer })
    if ('code' in standings) return standings
    for (const standing of standings) {
      const refusal = this.exhausted(standing, standing.known)
      if (refusal) this.#tell(standing)
      if (refusal) return refusal
    }
    return undefined
  }

  /** The standings of the budgets that a call of this payer counts against, the tenant's first. Empty when there are none, and returned without a promise if that is known. */
  standings(payer: Payer): Standing[] | Promise<Standing[] | BudgetRefusal> {
    const limits = this.#deps.limits.of(payer.tenant)
    if (limits instanceof Promise) return this.#standings(payer, limits)
    return budgetsOf(limits, payer, this.#today()).length === 0 ? [] : this.#standings(payer, limits)
  }

  async #standings(payer: Payer, reading: TenantLimits | Promise<TenantLimits>): Promise<Standing[] | BudgetRefusal> {
    const limits = await readable(reading)
    if (!limits) return UNKNOWN
    const all = budgetsOf(limits, payer, this.#today())
    const known = await readable(Promise.all(all.map(({ name }) => this.#spent(this.#periodOf(payer.tenant, name)))))
    return known ? all.map((each, i) => ({ ...each, known: known[i] ?? NOTHING_SPENT })) : UNKNOWN
  }

  /** The refusal if a period's budget is used up by this spending, else `undefined`. */
  exhausted(budget: Omit<Standing, 'known'>, { tokens, costUsd }: Spent): BudgetRefusal | undefined {
    const { limit } = budget
    if (tokens >= limit.tokens) return this.#usedUp(budget, `${limit.tokens} tokens`, 'tokens_per_day')
    if (costUsd < limit.costUsd) return undefined
    return this.#usedUp(budget, `${limit.costUsd} US dollars`, isDay(budget.name) ? 'usd_per_day' : 'usd_per_month')
  }

  /** Adds spending to the tenant's day, and to the customer's budgets with these names. */
  spend(tenant: TenantId, spent: Spent, ofCustomer: readonly string[] = []): void {
    for (const name of [this.#today(), ...ofCustomer]) {
      const period = this.#periodOf(tenant, name)
      period.own = addSpent(period.own, spent)
      period.isDirty = true
    }
  }

  /** The tenant's spending today. Throws `unavailable` when the store does not answer. */
  async today(tenant: TenantId): Promise<Spent & { resetsAt: Date }> {
    return { ...(await this.#spent(this.#periodOf(tenant, this.#today()))), resetsAt: endOf(this.#today()) }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#flushing
    await this.#flush()
  }

  /** Announces reached thresholds also without a model call, because a lowered budget may already be used up. */
  #tell(standing: Standing): void {
    const period = this.#periodOf(standing.payer.tenant, standing.name)
    const isNews = thresholdsReached(standing, standing.known).some(({ name }) => !period.announced.has(name))
    if (this.#deps.thresholds && isNews) period.isDirty = true
  }

  #usedUp({ name, payer }: Omit<Standing, 'known'>, budget: string, reason: BudgetRefusal['reason']): BudgetRefusal {
    const now = this.#now()
    const [period, resetsAt] = [isDay(name) ? 'day' : 'month', endOf(name)]
    const whose = payer.customer === undefined ? '' : ` of the customer ${payer.customer}`
    return {
      code: 'budget_exhausted',
      message: `the budget of ${budget} a ${period}${whose} is used up; it begins anew at ${resetsAt.toISOString()}`,
      reason,
      retryAfterSecs: Math.ceil((resetsAt.getTime() - now.getTime()) / 1000),
    }
  }

  #today(): string {
    return isoTime(this.#now().getTime()).slice(0, 'yyyy-mm-dd'.length)
  }

  #periodOf(tenant: TenantId, name: string): Period {
    const key = `${name} ${tenant}`
    const known = this.#periods.get(key)
    if (known) return known
    const fresh = {
      ...{ tenant, name, own: NOTHING_SPENT, others: undefined },
      ...{ readAt: Number.NEGATIVE_INFINITY, isDirty: false, announced: new Set<string>() },
    }
    this.#periods.set(key, fresh)
    return fresh
  }

  /** While the store is away the last sum is used. Throws when there is none. */
  async #spent(day: Period): Promise<Spent> {
    if (performance.now() - day.readAt > this.#everyMs) {
      const reading = this.#deps.store.ofOthers(day.tenant, { day: day.name, process: this.#process })
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
    const today = this.#today()
    for (const [key, entry] of this.#periods) {
      if (entry.isDirty) await this.#write(entry)
      const isOver = !today.startsWith(entry.name.split(' ')[0] ?? '')
      if (!entry.isDirty && isOver) this.#periods.delete(key)
    }
  }

  async #write(entry: Period): Promise<void> {
    const { tenant, name: day, own: spent } = entry
    entry.isDirty = false
    try {
      await this.#deps.store.put(tenant, { day, process: this.#process, spent })
      await this.#announce(entry)
    } catch (cause) {
      entry.isDirty = true
      this.#deps.log.debug("a tenant's spending could not be stored or announced; it is tried again", { cause })
    }
  }

  /** Reads the sum after writing its own part: if several processes write at the same time, the last one sees all parts. */
  async #announce(entry: Period): Promise<void> {
    const { thresholds, limits, store } = this.#deps
    const { tenant, name: period, announced } = entry
    const budget = thresholds && budgetOf(await limits.of(tenant), tenant, period)
    if (!budget) return
    entry.readAt = Number.NEGATIVE_INFINITY
    for (const reached of thresholdsReached(budget, await this.#spent(entry))) {
      const { name: what } = reached
      if (announced.has(what)) continue
      const isFirst = await store.once(tenant, { day: period, what }, () => thresholds.publish(reached))
      announced.add(what)
      if (isFirst) thresholds.append(reached)
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
