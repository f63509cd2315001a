import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { assertBudget, Budgets, type BudgetsDeps } from '../../../shared/tenancy/limits/budgets.ts'
import { KnownLimits } from '../../../shared/tenancy/limits/known-limits.ts'
import type { Threshold } from '../../../shared/tenancy/limits/periods.ts'
import { type SpendingStore } from '../../../shared/tenancy/limits/port.ts'
import { createSpendingStore } from '../../../shared/tenancy/limits/store/spending.ts'
import { EMPTY_CONFIG, NO_LIMITS, type TenantLimits } from '../../../shared/tenancy/tenant-config/config.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { tenantId } from '../../support/tenant.ts'
import { useTestStore } from '../../support/test-store.ts'
import { until } from '../../support/until.ts'

const TENANT = tenantId('t_1')
const log = SILENT_LOG

describe('the budgets of tenants', () => {
  const file = useTestStore({ perTest: true })
  let spending: SpendingStore
  let now: Date
  let isAway: boolean
  let failedWrites: number
  const opened: Budgets[] = []

  beforeEach(async () => {
    const real = createSpendingStore(file.store)
    const unlessAway = async <T>(act: () => Promise<T>) => {
      if (isAway) throw new AppError('unavailable', 'the store does not answer')
      return act()
    }
    failedWrites = 0
    spending = {
      async put(...args) {
        if (isAway) failedWrites += 1
        await unlessAway(() => real.put(...args))
      },
      ofOthers: (...args) => unlessAway(() => real.ofOthers(...args)),
      once: (...args) => unlessAway(() => real.once(...args)),
    }
    now = new Date('2026-11-22T23:59:00.000Z')
    isAway = false
  })
  afterEach(async () => {
    isAway = false
    for (const budgets of opened.splice(0)) await budgets.close()
  })

  const open = (
    limits: Partial<TenantLimits> = { tokens_per_day: 100 },
    { store: written = spending, everyMs = 5, thresholds }: Partial<BudgetsDeps> = {},
  ) => {
    const config = { ...EMPTY_CONFIG, limits: { ...NO_LIMITS, ...limits } }
    const known = new KnownLimits({ peek: () => config, get: async () => config })
    const budgets = new Budgets({ limits: known, store: written, log, now: () => now, everyMs, thresholds })
    opened.push(budgets)
    return budgets
  }

  describe('D53.1: thresholds', () => {
    const published = new Map<string, number>()
    const announced: string[] = []
    let isOutboxAway = false
    const told = ({ period, budget, percent }: Threshold) => `${period} ${budget} ${percent}`
    const thresholds = {
      async publish(reached: Threshold) {
        published.set(told(reached), (published.get(told(reached)) ?? 0) + 1)
        if (isOutboxAway) throw new AppError('unavailable', 'the store does not answer')
      },
      append: (reached: Threshold) => void announced.push(told(reached)),
    }
    const openTelling = (limits: Partial<TenantLimits>, everyMs = 5) => open(limits, { thresholds, everyMs })
    const spend = async (all: readonly Budgets[], tokens: number, ofCustomer: string[] = []) => {
      await Promise.all(all.map((budgets) => budgets.refusal(TENANT))) // Each has read what it knows of the others.
      for (const budgets of all) budgets.spend(TENANT, { tokens, costUsd: tokens / 10 }, ofCustomer)
      await Promise.all(all.map((budgets) => budgets.close()))
    }
    const DAY = '2026-11-22'

    beforeEach(() => {
      published.clear()
      announced.length = 0
      isOutboxAway = false
    })

    it('of many processes that spend at once, one announces each that all together reach, once in the period', async () => {
      const limits = { tokens_per_day: 1_000, usd_per_day: 200 }
      const open12 = () => Array.from({ length: 12 }, () => openTelling(limits, 60_000))
      await spend(open12(), 41) // 492 tokens, $49.2
      expect(announced).to.deep.equal([])
      await spend(open12(), 1) // 504 tokens
      expect(announced).to.deep.equal([`${DAY} tokens_per_day 50`])
      await spend(open12(), 50) // 1,104 tokens, $110.4
      const all = ['tokens_per_day 50', 'tokens_per_day 80', 'tokens_per_day 100', 'usd_per_day 50']
      expect(announced).to.have.members(all.map((each) => `${DAY} ${each}`))
      expect([...published.keys()], 'webhooks').to.have.members(announced)
      await spend(open12(), 1)
      expect(announced).to.have.length(4)
      now = new Date('2026-11-23T00:00:01.000Z')
      await spend([openTelling(limits)], 500)
      expect(announced.at(-1)).to.equal('2026-11-23 tokens_per_day 50')
    })

    it("of a customer's day and month, and none of a customer or an amount without a limit", async () => {
      const limits = { customers: { overrides: { 'c 1': { tokens_per_day: 100, usd_per_month: 20 } } } }
      await spend([openTelling(limits)], 160, [`${DAY} c 1`, '2026-11 c 1', `${DAY} c2`])
      const all = [50, 80, 100].map((percent) => `${DAY} c 1 tokens_per_day ${percent}`)
      expect(announced).to.have.members([...all, '2026-11 c 1 usd_per_month 50', '2026-11 c 1 usd_per_month 80'])
    })

    it('of a budget that was raised count anew, and those of one that was lowered are told at the next start', async () => {
      await spend([openTelling({ tokens_per_day: 100 })], 50)
      await spend([openTelling({ tokens_per_day: 200 })], 50)
      await spend([openTelling({ tokens_per_day: 100 })], 1)
      const announcedLast = [50, 50, 80, 100].map((percent) => `${DAY} tokens_per_day ${percent}`)
      expect(announced).to.deep.equal(announcedLast)
      const lowered = openTelling({ tokens_per_day: 90 })
      expect((await lowered.refusal(TENANT))?.code).to.equal('budget_exhausted')
      await lowered.close()
      expect(announced.slice(announcedLast.length)).to.deep.equal(announcedLast.slice(1))
    })

    it('are announced when the store is back, in the standalone process too, which does so while it runs', async () => {
      isOutboxAway = true
      const budgets = openTelling({ tokens_per_day: 100 })
      budgets.spend(TENANT, { tokens: 60, costUsd: 0 })
      await until(() => (published.get(`${DAY} tokens_per_day 50`) ?? 0) > 1, { what: 'a second attempt' })
      expect(announced).to.deep.equal([])
      isOutboxAway = false
      await until(() => announced.length > 0, { what: 'the event' })
      budgets.spend(TENANT, { tokens: 1, costUsd: 0 })
      await budgets.close()
      expect(announced).to.deep.equal([`${DAY} tokens_per_day 50`])
    })
  })

  const codeOf = async (budgets: Budgets) => (await budgets.refusal(TENANT))?.code

  it('what one process has spent counts in the others, also after it has ended', async () => {
    const first = open()
    first.spend(TENANT, { tokens: 60, costUsd: 0 })
    await first.close()
    const second = open()
    expect(await codeOf(second)).to.equal(undefined)
    second.spend(TENANT, { tokens: 40, costUsd: 0 })
    expect(await codeOf(second)).to.equal('budget_exhausted')
    await second.close()
    expect(await open().today(TENANT)).to.deep.include({ tokens: 100, costUsd: 0 })
  })

  const storedAt = async (day: string) => (await spending.ofOthers(TENANT, { day, process: 'none' })).tokens
  const stored = (tokens: number) =>
    until(async () => (await storedAt('2026-11-22')) === tokens, { what: `${tokens} tokens to be stored` })

  it('a spending whose write failed is written when the store is back, also the last one before midnight', async () => {
    isAway = true
    open().spend(TENANT, { tokens: 60, costUsd: 0 })
    await until(() => failedWrites >= 1, { what: 'a write to fail' })
    now = new Date('2026-11-23T00:00:00.000Z')
    const before = failedWrites
    await until(() => failedWrites >= before + 2, { what: 'the spending of the day before to be tried again' })
    isAway = false
    await stored(60)
    expect(await storedAt('2026-11-23')).to.equal(0)
  })

  it('what is spent during a write is written by the next one, also when the day ended meanwhile', async () => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const slow: SpendingStore = {
      ...spending,
      async put(...args) {
        begun.resolve()
        await held
        await spending.put(...args)
      },
    }
    const budgets = open({}, { store: slow })
    budgets.spend(TENANT, { tokens: 60, costUsd: 0 })
    await begun.promise
    budgets.spend(TENANT, { tokens: 7, costUsd: 0 })
    now = new Date('2026-11-23T00:00:00.000Z')
    release()
    await stored(67)
  })

  it('a process counts what it has written itself once', async () => {
    const budgets = open({ tokens_per_day: 140 })
    budgets.spend(TENANT, { tokens: 60, costUsd: 0.25 })
    await stored(60)
    open().spend(TENANT, { tokens: 10, costUsd: 0.25 })
    const seen = async () => {
      const { tokens, costUsd } = await budgets.today(TENANT)
      return tokens > 60 && { tokens, costUsd }
    }
    expect(await until(seen, { what: 'the spending of the other process to be seen' })).to.deep.equal({
      tokens: 70,
      costUsd: 0.5,
    })
    expect(await codeOf(budgets)).to.equal(undefined)
  })

  it('begins anew at midnight UTC, and says how long that is', async () => {
    const budgets = open()
    budgets.spend(TENANT, { tokens: 100, costUsd: 0 })
    expect(await budgets.refusal(TENANT)).to.include({ code: 'budget_exhausted', retryAfterSecs: 60 })
    now = new Date('2026-11-23T00:00:00.000Z')
    expect(await codeOf(budgets)).to.equal(undefined)
  })

  it('counts dollars apart from tokens', async () => {
    const budgets = open({ usd_per_day: 0.3 })
    budgets.spend(TENANT, { tokens: 1_000_000, costUsd: 0.2 })
    expect(await codeOf(budgets)).to.equal(undefined)
    budgets.spend(TENANT, { tokens: 0, costUsd: 0.1 })
    expect(await codeOf(budgets)).to.equal('budget_exhausted')
  })

  it('a budget of dollars is used up when just so much is spent, over all processes', async () => {
    const first = open()
    first.spend(TENANT, { tokens: 0, costUsd: 0.25 })
    await first.close()
    const second = open({ usd_per_day: 0.5 })
    second.spend(TENANT, { tokens: 0, costUsd: 0.25 })
    expect((await second.refusal(TENANT))?.reason).to.equal('usd_per_day')
  })

  it('the store is read once and written once for many calls that come within a second', async () => {
    const calls: string[] = []
    const counting: SpendingStore = {
      put: (...args) => (calls.push('put'), spending.put(...args)),
      ofOthers: (...args) => (calls.push('ofOthers'), spending.ofOthers(...args)),
      once: spending.once,
    }
    const budgets = open({ tokens_per_day: 100 }, { store: counting, everyMs: 60_000 })
    for (let i = 0; i < 5; i++) {
      expect(await codeOf(budgets)).to.equal(undefined)
      budgets.spend(TENANT, { tokens: 1, costUsd: 0 })
    }
    await budgets.close()
    await budgets.close()
    expect(calls).to.deep.equal(['ofOthers', 'put'])
  })

  it('nothing is written for a tenant that has spent nothing', async () => {
    let writes = 0
    const counting: SpendingStore = { ...spending, put: async () => void writes++ }
    const budgets = open({ tokens_per_day: 100 }, { store: counting })
    expect(await codeOf(budgets)).to.equal(undefined)
    await budgets.close()
    expect(writes).to.equal(0)
  })

  it('nothing is refused without a budget, also while the store is away', async () => {
    isAway = true
    expect(await codeOf(open({}))).to.equal(undefined)
  })

  it('a tenant whose limits cannot be read calls no model', async () => {
    const limits = { of: () => Promise.reject(new AppError('unavailable', 'the store does not answer')) }
    const budgets = new Budgets({ limits, store: spending, log, now: () => now })
    opened.push(budgets)
    expect(await budgets.refusal(TENANT)).to.include({ code: 'storage_unavailable', retryAfterSecs: 2 })
    const refused = await assertBudget(budgets, TENANT).catch((cause: unknown) => cause)
    expect(refused).to.include({ kind: 'unavailable', code: 'storage_unavailable' })
  })

  it('a sum that is no number any more stays the largest one, also after a restart', async () => {
    const most = { tokens: Number.MAX_SAFE_INTEGER, costUsd: Number.MAX_SAFE_INTEGER }
    const first = open()
    for (let i = 0; i < 2; i++) first.spend(TENANT, { tokens: 1e308, costUsd: 1e308 })
    expect(await first.today(TENANT)).to.include(most)
    await first.close()
    const second = open()
    second.spend(TENANT, { tokens: 7, costUsd: 7 })
    expect(await codeOf(second)).to.equal('budget_exhausted')
    await second.close()
    expect(await open().today(TENANT)).to.include(most)
  })

  it('a budget of which nothing is known refuses, and the last known sum counts while the store is away', async () => {
    isAway = true
    expect(await codeOf(open())).to.equal('storage_unavailable')
    isAway = false
    const budgets = open()
    expect(await codeOf(budgets)).to.equal(undefined)
    isAway = true
    budgets.spend(TENANT, { tokens: 100, costUsd: 0 })
    await until(() => failedWrites > 0, { what: 'what is known to be old' })
    expect(await codeOf(budgets)).to.equal('budget_exhausted')
  })
})
