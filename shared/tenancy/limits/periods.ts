import type { TenantId } from '../../kernel/tenant.ts'
import { limitsOfCustomer, type TenantLimits } from '../tenant-config/config.ts'
import { type Held, isDay, type Spent } from './port.ts'

/** The tenant that pays for a model call, and its customer, which may have budgets of its own. */
export type Payer = { tenant: TenantId; customer?: string | undefined }

/**
 * The period of one budget: its limits, `Infinity` where there is none, and its known spending in this process. `name` distinguishes it
 * from the tenant's other budgets.
 */
export type Standing = { payer: Payer; name: string; limit: Held; known: Spent }

/** The budgets of a payer, each with the name of its present period. The tenant's own budget is included if any limit applies to its calls. */
export function budgetsOf(limits: TenantLimits, payer: Payer, today: string): Omit<Standing, 'known'>[] {
  const { tenant, customer } = payer
  const { tokens_per_day: tokens, usd_per_day: costUsd, concurrent_model_calls: calls } = limits
  const ofTenant = { payer: { tenant }, name: today, limit: limitOf({ tokens, costUsd, calls }) }
  const own = customer === undefined ? undefined : limitsOfCustomer(limits, customer)
  if (!own) return [ofTenant].filter(isLimited)
  const month = today.slice(0, 'yyyy-mm'.length)
  return [
    ofTenant,
    { payer, name: `${today} ${customer}`, limit: limitOf({ tokens: own.tokens_per_day, costUsd: own.usd_per_day }) },
    { payer, name: `${month} ${customer}`, limit: limitOf({ costUsd: own.usd_per_month }) },
  ].filter(isLimited)
}

const isLimited = ({ limit }: Pick<Standing, 'limit'>): boolean => Object.values(limit).some(Number.isFinite)

/** The budget whose period has this name. */
export function budgetOf(limits: TenantLimits, tenant: TenantId, name: string): Omit<Standing, 'known'> | undefined {
  const [period = '', ...customer] = name.split(' ')
  const payer = { tenant, customer: customer.length > 0 ? customer.join(' ') : undefined }
  return budgetsOf(limits, payer, isDay(name) ? period : `${period}-01`).find((budget) => budget.name === name)
}

type Limited = { [amount in keyof Held]?: number | null | undefined }

const limitOf = ({ tokens, costUsd, calls }: Limited): Held => ({
  tokens: tokens ?? Number.POSITIVE_INFINITY,
  costUsd: costUsd ?? Number.POSITIVE_INFINITY,
  calls: calls ?? Number.POSITIVE_INFINITY,
})

/** When the period of a budget ends: a day or a month of UTC. */
export function endOf(name: string): Date {
  const [year = 0, month = 1, day = 0] = (name.split(' ')[0] ?? '').split('-').map(Number)
  return new Date(isDay(name) ? Date.UTC(year, month - 1, day + 1) : Date.UTC(year, month))
}

/** Part of a budget that is used up in its `period`. `name` is unique within the period; when the budget changes its size, the names change. */
export type Threshold = {
  payer: Payer
  period: string
  name: string
  budget: 'tokens_per_day' | 'usd_per_day' | 'usd_per_month'
  percent: number
}

const PERCENTS = [50, 80, 100]

/** The thresholds that a budget has reached by what was spent, the lowest of each limit first (D53.1). */
export function thresholdsReached({ name: period, payer, limit }: Omit<Standing, 'known'>, spent: Spent): Threshold[] {
  const of = (budget: Threshold['budget'], used: number, most: number): Threshold[] =>
    PERCENTS.filter((percent) => used * 100 >= most * percent).map((percent) => ({
      ...{ payer, period, budget, percent },
      name: `${budget} ${most} ${percent}%`,
    }))
  return [
    ...of('tokens_per_day', spent.tokens, limit.tokens),
    ...of(isDay(period) ? 'usd_per_day' : 'usd_per_month', spent.costUsd, limit.costUsd),
  ]
}
