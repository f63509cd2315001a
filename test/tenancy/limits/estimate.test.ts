import { expect } from 'chai'
import { estimate, leastOf, type PlannedCall } from '../../../shared/tenancy/limits/estimate.ts'
import type { Payer, Standing } from '../../../shared/tenancy/limits/periods.ts'
import type { Spent } from '../../../shared/tenancy/limits/port.ts'
import { tenantId } from '../../support/tenant.ts'

const PAYER: Payer = { tenant: tenantId('acme'), customer: 'c-1' }
/** A dollar for a thousand tokens of input, and ten for those of output. */
const priceOf = ({ type }: { type: string }, _model: string, { input, output }: { input: number; output: number }) =>
  type === 'unpriced' ? undefined : (input + 10 * output) / 1_000

const callOf = (fields: Partial<PlannedCall> = {}): PlannedCall => ({
  ...{ name: 'main', provider: { type: 'priced', instance: 'own' }, model: 'm', inputTokens: 100, maxOutputTokens: 50 },
  ...fields,
})

const budgets = (...left: (Partial<Spent> & { customer?: string })[]) => ({
  standings: async (): Promise<Standing[]> =>
    left.map(({ customer, tokens = Number.POSITIVE_INFINITY, costUsd = Number.POSITIVE_INFINITY }) => ({
      payer: { ...PAYER, customer },
      name: '2026-11-30',
      limit: { tokens: tokens + 10, costUsd: costUsd + 1, calls: 1 },
      known: { tokens: 10, costUsd: 1 },
    })),
  exhausted: ({ limit }: Pick<Standing, 'limit'>, { tokens, costUsd }: Spent) =>
    tokens >= limit.tokens || costUsd >= limit.costUsd
      ? ({ code: 'budget_exhausted', message: 'used up', reason: 'tokens_per_day', retryAfterSecs: 1 } as const)
      : undefined,
})

describe('D57: the estimate of a start', () => {
  it('has each call from its input alone to the longest answer, and their sums', async () => {
    const other = callOf({ name: 'b', provider: { type: 'priced' }, inputTokens: 1_000, maxOutputTokens: 1 })
    expect(await estimate(PAYER, [callOf(), other], { priceOf })).to.deep.equal({
      calls: [
        {
          name: 'main',
          instance: 'own',
          model: 'm',
          input_tokens: 100,
          max_output_tokens: 50,
          cost_usd_from: 0.1,
          cost_usd_to: 0.6,
        },
        {
          name: 'b',
          instance: null,
          model: 'm',
          input_tokens: 1_000,
          max_output_tokens: 1,
          cost_usd_from: 1,
          cost_usd_to: 1.01,
        },
      ],
      ...{ input_tokens: 1_100, cost_usd_from: 1.1, cost_usd_to: 0.6 + 1.01, budget: 'enough' },
    })
  })

  it('says null where nothing limits an answer, and where a price is not known', async () => {
    const free = await estimate(PAYER, [callOf(), callOf({ maxOutputTokens: undefined })], { priceOf })
    expect(free).to.include({ cost_usd_from: 0.2, cost_usd_to: null })
    expect(free.calls[1]).to.include({ max_output_tokens: null, cost_usd_to: null })
    const unpriced = await estimate(PAYER, [callOf({ provider: { type: 'unpriced' } }), callOf()], { priceOf })
    expect(unpriced).to.include({ cost_usd_from: null, cost_usd_to: null })
    expect([leastOf(undefined, 5, 3), leastOf(undefined, undefined)]).to.deep.equal([3, undefined])
  })

  for (const [what, left, expected] of [
    ['all that is left', [{ tokens: 150 }, { costUsd: 0.6, customer: 'c-1' }], { budget: 'enough' }],
    [
      'a token too few',
      [{ tokens: 149 }],
      { budget: 'short', budget_message: 'the budget has 149 tokens left, less than this may cost' },
    ],
    [
      'a cent too little of a customer',
      [{ tokens: 1_000 }, { costUsd: 0.59, customer: 'c-1' }],
      {
        budget: 'short',
        budget_message: 'the budget of the customer c-1 has 0.5900 US dollars left, less than this may cost',
      },
    ],
    ['nothing', [{ tokens: 1_000 }, { tokens: 0, customer: 'c-1' }], { budget: 'used_up', budget_message: 'used up' }],
  ] as const)
    it(`with ${what} left of the budgets: ${expected.budget}`, async () => {
      const { budget, budget_message } = await estimate(PAYER, [callOf()], { priceOf, budgets: budgets(...left) })
      expect({ budget, ...(budget_message !== undefined && { budget_message }) }).to.deep.equal(expected)
    })

  it('takes 1,000 tokens of an answer that nothing limits, as the call reserves', async () => {
    const call = callOf({ maxOutputTokens: undefined })
    const of = async (tokens: number) =>
      (await estimate(PAYER, [call], { priceOf, budgets: budgets({ tokens }) })).budget
    expect([await of(1_100), await of(1_099)]).to.deep.equal(['enough', 'short'])
  })

  it('is unavailable while what is left of a budget cannot be read', async () => {
    const unknown = {
      code: 'storage_unavailable',
      message: 'not now',
      reason: 'budget_unknown',
      retryAfterSecs: 2,
    } as const
    const reading = estimate(PAYER, [callOf()], { priceOf, budgets: { ...budgets(), standings: async () => unknown } })
    expect(await reading.catch((cause: unknown) => cause)).to.include({ kind: 'unavailable', retryAfterSecs: 2 })
  })
})
