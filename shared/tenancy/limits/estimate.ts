import type { PricedProvider, PriceOf } from '../../agent/providers/port.ts'
import { AppError } from '../../kernel/errors.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import type { Budgets } from './budgets.ts'
import type { Payer, Standing } from './periods.ts'
import { addSpent, NOTHING_SPENT, type Spent } from './port.ts'

/** The estimated model calls and cost of a start (D57). */
export type Estimate = ApiType<'Estimate'>

/** The first model call of an agent or a step, by its name. Without `maxOutputTokens`, only the model limits its answer. */
export type PlannedCall = {
  name: string
  provider: PricedProvider & { instance?: string | undefined }
  model: string
  inputTokens: number
  maxOutputTokens?: number | undefined
}

/** The assumed length of an answer in tokens, until the model has given a longer one. */
export const USUAL_OUTPUT = 1_000

type Deps = {
  priceOf: PriceOf
  /** Left out: no tenant has a budget. */
  budgets?: Pick<Budgets, 'standings' | 'exhausted'> | undefined
}

/**
 * Estimates these calls, and whether the rest of the budgets is enough for them. It reserves nothing. Throws
 * `unavailable` when the budgets cannot be read.
 */
export async function estimate(payer: Payer, calls: readonly PlannedCall[], deps: Deps): Promise<Estimate> {
  const shown = calls.map((call) => shownCall(call, deps.priceOf))
  const most = calls.map((call) => mostOf(call, deps.priceOf)).reduce(addSpent, NOTHING_SPENT)
  return {
    calls: shown,
    input_tokens: shown.reduce((sum, { input_tokens }) => sum + input_tokens, 0),
    cost_usd_from: sumOf(shown.map(({ cost_usd_from }) => cost_usd_from)),
    cost_usd_to: sumOf(shown.map(({ cost_usd_to }) => cost_usd_to)),
    ...(await budgetFor(payer, most, deps)),
  }
}

/** The smaller of the two limits of an answer, those of the instance and of the run (D42.3). */
export const leastOf = (...limits: (number | undefined)[]): number | undefined => {
  const known = limits.filter((limit) => limit !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}

function shownCall({ name, provider, model, inputTokens, maxOutputTokens }: PlannedCall, priceOf: PriceOf) {
  const priced = (output: number) => priceOf(provider, model, usageOf(inputTokens, output)) ?? null
  return {
    ...{ name, instance: provider.instance ?? null, model, input_tokens: inputTokens },
    max_output_tokens: maxOutputTokens ?? null,
    cost_usd_from: priced(0),
    cost_usd_to: maxOutputTokens === undefined ? null : priced(maxOutputTokens),
  }
}

const usageOf = (input: number, output: number) => ({ input, cacheRead: 0, cacheWrite: 0, output })

/** The amount that the call reserves. */
export const mostOf = (call: Omit<PlannedCall, 'name'>, priceOf: PriceOf): Spent => new MostSpent(call, priceOf)

/** The price is looked up lazily: the first look-up loads the catalogue, and a call without a budget does not need it. */
class MostSpent implements Spent {
  readonly tokens: number
  readonly #call: Omit<PlannedCall, 'name'>
  readonly #priceOf: PriceOf

  constructor(call: Omit<PlannedCall, 'name'>, priceOf: PriceOf) {
    this.#call = call
    this.#priceOf = priceOf
    this.tokens = call.inputTokens + outputOf(call)
  }

  get costUsd(): number {
    const { provider, model, inputTokens } = this.#call
    return this.#priceOf(provider, model, usageOf(inputTokens, outputOf(this.#call))) ?? 0
  }
}

const outputOf = ({ maxOutputTokens = USUAL_OUTPUT }: Pick<PlannedCall, 'maxOutputTokens'>): number => maxOutputTokens

const sumOf = (amounts: readonly (number | null)[]): number | null =>
  amounts.reduce((sum, amount) => (sum === null || amount === null ? null : sum + amount), 0)

async function budgetFor(
  payer: Payer,
  most: Spent,
  { budgets }: Deps,
): Promise<Pick<Estimate, 'budget' | 'budget_message'>> {
  const standings = (await budgets?.standings(payer)) ?? []
  if ('code' in standings) {
    const { code, message, retryAfterSecs } = standings
    throw new AppError('unavailable', message, { code, retryAfterSecs })
  }
  for (const standing of standings) {
    const refusal = budgets?.exhausted(standing, standing.known)
    if (refusal) return { budget: 'used_up', budget_message: refusal.message }
  }
  const short = standings.find(({ known, limit }) => isAbove(addSpent(known, most), limit))
  return short ? { budget: 'short', budget_message: shortOf(short) } : { budget: 'enough' }
}

const isAbove = ({ tokens, costUsd }: Spent, limit: Spent): boolean => tokens > limit.tokens || costUsd > limit.costUsd

function shortOf({ payer: { customer }, known, limit }: Standing): string {
  const left = [
    ...(Number.isFinite(limit.tokens) ? [`${limit.tokens - known.tokens} tokens`] : []),
    ...(Number.isFinite(limit.costUsd) ? [`${(limit.costUsd - known.costUsd).toFixed(4)} US dollars`] : []),
  ]
  const whose = customer === undefined ? 'the budget' : `the budget of the customer ${customer}`
  return `${whose} has ${left.join(' and ')} left, less than this may cost`
}
