import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { AppError } from '../../shared/errors.ts'
import { Budgets } from '../../shared/limits/budgets.ts'
import { KnownLimits } from '../../shared/limits/known-limits.ts'
import { createMeter } from '../../shared/limits/meter.ts'
import { type Limits, NO_LIMITS, type SpendingStore } from '../../shared/limits/port.ts'
import { createLog } from '../../shared/log.ts'
import type { ModelPart, ModelProvider } from '../../shared/providers/port.ts'
import { COLLECTIONS } from '../../shared/store/collections.ts'
import type { Store } from '../../shared/store/port.ts'
import { createSpendingStore } from '../../shared/store/spending/spending.ts'
import { openSqliteStore } from '../../shared/store/sqlite/sqlite.ts'
import type { TenantId } from '../../shared/tenant.ts'
import { EMPTY_CONFIG } from '../../shared/tenant-config/config.ts'

const TENANT = 't_1' as TenantId
const log = createLog({ level: 'error', write: () => {} })
const USAGE = { input: 90, cacheRead: 0, cacheWrite: 0, output: 10 }

describe('the budgets of tenants', () => {
  let dir: string
  let store: Store
  let spending: SpendingStore
  let now: Date
  let isAway: boolean
  const opened: Budgets[] = []

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'ae-budgets-'))
  })
  after(() => rm(dir, { recursive: true }))

  let files = 0
  beforeEach(async () => {
    store = await openSqliteStore({ file: join(dir, `${files++}.db`), collections: COLLECTIONS })
    const real = createSpendingStore(store)
    const unlessAway = async <T>(act: () => Promise<T>) => {
      if (isAway) throw new AppError('unavailable', 'the store does not answer')
      return act()
    }
    spending = {
      put: (...args) => unlessAway(() => real.put(...args)),
      ofOthers: (...args) => unlessAway(() => real.ofOthers(...args)),
    }
    now = new Date('2026-11-22T23:59:00.000Z')
    isAway = false
  })
  afterEach(async () => {
    isAway = false
    for (const budgets of opened.splice(0)) await budgets.close()
    await store.close()
  })

  const open = (limits: Partial<Limits> = { tokens_per_day: 100 }) => {
    const config = { ...EMPTY_CONFIG, limits: { ...NO_LIMITS, ...limits } }
    const known = new KnownLimits({ peek: () => config, get: async () => config })
    const budgets = new Budgets({ limits: known, store: spending, log, now: () => now })
    opened.push(budgets)
    return budgets
  }

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

  it('nothing is refused without a budget, also while the store is away', async () => {
    isAway = true
    expect(await codeOf(open({}))).to.equal(undefined)
  })

  it('a budget of which nothing is known refuses, and the last known sum counts while the store is away', async () => {
    isAway = true
    expect(await codeOf(open())).to.equal('storage_unavailable')
    isAway = false
    const budgets = open()
    expect(await codeOf(budgets)).to.equal(undefined)
    isAway = true
    budgets.spend(TENANT, { tokens: 100, costUsd: 0 })
    expect(await codeOf(budgets)).to.equal('budget_exhausted')
  })

  describe('at a metered provider', () => {
    const answering = (parts: ModelPart[]): ModelProvider => ({
      type: 'openai',
      async *stream() {
        yield* parts
      },
    })

    async function read(budgets: Budgets, parts: ModelPart[], count = Number.POSITIVE_INFINITY): Promise<ModelPart[]> {
      const provider = createMeter(budgets, () => 0.5).provider(TENANT, answering(parts))
      const request = {
        model: 'm',
        messages: [{ role: 'user' as const, text: 'x'.repeat(40) }],
        tools: [],
        stopSequences: [],
      }
      const got: ModelPart[] = []
      for await (const part of provider.stream(request, new AbortController().signal))
        if (got.push(part) >= count) break
      return got
    }

    const finish: ModelPart = { type: 'finish', reason: 'end_turn', usage: USAGE }

    it('a call is counted with its tokens and its price, and the next one above the budget is refused', async () => {
      const budgets = open()
      const parts: ModelPart[] = [{ type: 'text_delta', text: 'hi' }, finish]
      expect(await read(budgets, parts)).to.deep.equal(parts)
      expect(await budgets.today(TENANT)).to.deep.include({ tokens: 100, costUsd: 0.5 })
      const [refused, ...more] = await read(budgets, parts)
      expect(refused).to.have.nested.property('failure.code', 'budget_exhausted')
      expect(more).to.deep.equal([])
    })

    it('a call that is cut off is counted by estimate, once', async () => {
      const budgets = open()
      await read(budgets, [{ type: 'text_delta', text: 'y'.repeat(80) }, finish], 1)
      expect((await budgets.today(TENANT)).tokens).to.equal(30)
    })

    it('a call that failed before its first part costs nothing', async () => {
      const budgets = open()
      const failure = {
        code: 'provider_unavailable',
        message: '',
        reason: '',
        isRetryable: true,
        isFailover: true,
      } as const
      await read(budgets, [{ type: 'failure', failure }])
      expect((await budgets.today(TENANT)).tokens).to.equal(0)
    })
  })
})
