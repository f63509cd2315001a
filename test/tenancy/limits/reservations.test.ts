// Tests tenant-holds.ts and hold.ts: what a process holds back shows in what its calls may do.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'chai'
import fc from 'fast-check'
import { AppError } from '../../../shared/kernel/errors.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import { Budgets } from '../../../shared/tenancy/limits/budgets.ts'
import { Hold } from '../../../shared/tenancy/limits/hold.ts'
import { SINGLE_PROCESS } from '../../../shared/tenancy/limits/holds.ts'
import { type BudgetHolds, NOTHING_HELD, NOTHING_SPENT, type Spent } from '../../../shared/tenancy/limits/port.ts'
import { createRedisHolds } from '../../../shared/tenancy/limits/redis-holds.ts'
import { Reservations } from '../../../shared/tenancy/limits/reservations.ts'
import type { Reservation } from '../../../shared/tenancy/limits/tenant-holds.ts'
import { NO_LIMITS, type TenantLimits } from '../../../shared/tenancy/tenant-config/config.ts'
import { useOpened } from '../../support/fixture.ts'
import { useRedis } from '../../support/redis.ts'
import { settled } from '../../support/settled.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { tenantId } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'

const SIGNAL = new AbortController().signal
const MOST: Spent = { tokens: 100, costUsd: 2 }

describe('what model calls reserve of a budget', () => {
  const redis = useRedis()
  const link = useOpened(() => openRedisLink(redis.url))

  const opened: { close(): unknown }[] = []
  let number = 0
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close()
  })

  /** A process of the product. The others learn what it has spent from the holds alone: nothing of it reaches a store. */
  function process(tokens: number | null, holds: BudgetHolds, usd: number | null = null, waitMs = 60_000) {
    return limited({ tokens_per_day: tokens, usd_per_day: usd }, holds, waitMs)
  }
  function limited(some: Partial<TenantLimits>, holds: BudgetHolds, waitMs = 60_000, now = () => new Date()) {
    const limits = { ...NO_LIMITS, ...some }
    const store = { put: async () => {}, ofOthers: async () => NOTHING_SPENT, once: async () => false }
    const budgets = new Budgets({ limits: { of: () => limits }, store, log: SILENT_LOG, now })
    const reservations = new Reservations({ budgets, holds, log: SILENT_LOG, waitMs })
    opened.push(budgets, reservations)
    return reservations
  }
  const newTenant = () => tenantId(`t_reserve_${globalThis.process.pid}_${number++}`)

  const FORMS: [string, () => BudgetHolds, number][] = [
    ['one process', () => SINGLE_PROCESS, 1],
    ['four processes', () => createRedisHolds(link.run), 4],
  ]
  for (const [form, open, count] of FORMS)
    describe(`of ${form}`, () => {
      const processes = (...limits: [number | null, (number | null)?]) =>
        Array.from({ length: count }, () => process(limits[0], open(), limits[1]))

      it('of many calls that begin at the same time no more spend than the budget and one call', async () => {
        const tenant = newTenant()
        const all = processes(null, 5)
        let spent = 0
        const call = async (each: Reservations) => {
          const reserved = await each.reserve({ tenant }, () => MOST, SIGNAL)
          if ('code' in reserved) return reserved.code
          await settled()
          spent += 2
          reserved.settle(MOST)
          return 'called'
        }
        const ends = await Promise.all(Array.from({ length: 40 }, (_, i) => call(all[i % count] ?? process(0, open()))))
        expect(spent).to.be.within(5, 6)
        expect(ends.filter((end) => end === 'budget_exhausted')).to.have.length(40 - spent / 2)
      })

      it('a call that costs more than was reserved is reported at once, and another one with the next report', async () => {
        const [tenant, inner] = [newTenant(), open()]
        const reported: number[] = []
        const ask: BudgetHolds['ask'] = (of, requests) => {
          reported.push(requests[0]?.own.now.tokens ?? 0)
          return inner.ask(of, requests)
        }
        const each = process(10_000, { ask })
        for (const tokens of [MOST.tokens, 3 * MOST.tokens]) {
          const reserved = await each.reserve({ tenant }, () => MOST, SIGNAL)
          if ('settle' in reserved) reserved.settle({ tokens, costUsd: 0 })
          await settled()
        }
        expect(reported).to.deep.equal([0, 4 * MOST.tokens])
      })

      it('whatever calls cost, and whenever they end, the budget is not exceeded by more than the estimates were wrong', async () => {
        const call = fc.record({
          most: fc.integer({ min: 1, max: 50 }),
          used: fc.integer({ min: 0, max: 60 }),
          turns: fc.integer({ min: 0, max: 3 }),
        })
        await fc.assert(
          fc.asyncProperty(
            fc.integer({ min: 1, max: 300 }),
            fc.array(call, { minLength: 1, maxLength: 25 }),
            async (budget, calls) => {
              const tenant = newTenant()
              const all = processes(budget)
              let [used, wrong] = [0, 0]
              await Promise.all(
                calls.map(async ({ most, used: tokens, turns }, i) => {
                  const reserved = await all[i % count]?.reserve(
                    { tenant },
                    () => ({ tokens: most, costUsd: 0 }),
                    SIGNAL,
                  )
                  if (!reserved || 'code' in reserved) return
                  for (let turn = 0; turn < turns; turn++) await nextTurn()
                  used += tokens
                  wrong += Math.max(0, tokens - most)
                  reserved.settle({ tokens, costUsd: 0 })
                }),
              )
              for (const each of opened.splice(0)) await each.close()
              const largest = Math.max(...calls.map(({ most }) => most))
              expect(used).to.be.at.most(budget + wrong + largest)
            },
          ),
          { numRuns: count === 1 ? 60 : 4 },
        )
      })
    })

  const anyEnd = fc.record({
    most: fc.integer({ min: 1, max: 50 }),
    used: fc.integer({ min: 0, max: 60 }),
    dies: fc.nat(9),
  })
  it('whichever processes die, and on whichever side of midnight their clocks are, each day keeps its budget', async () => {
    const days = ['2026-11-22T23:59:59.000Z', '2026-11-23T00:00:01.000Z'].map((time) => () => new Date(time))
    const calls = fc.array(anyEnd, { minLength: 4, maxLength: 25 })
    const property = fc.asyncProperty(fc.integer({ min: 1, max: 300 }), calls, async (budget, all) => {
      const tenant = newTenant()
      const clockOf = (i: number) => days[i % 2] ?? (() => new Date())
      const open = (i: number) => limited({ tokens_per_day: budget }, createRedisHolds(link.run), 20, clockOf(i))
      const alive = [0, 1, 2, 3].map(open)
      const ofDay = [0, 1].map(() => ({ used: 0, wrong: 0 }))
      const call = async ({ most, used: tokens, dies }: (typeof all)[number], i: number) => {
        const reserved = await alive[i % 4]?.reserve({ tenant }, () => ({ tokens: most, costUsd: 0 }), SIGNAL)
        if (!reserved || 'code' in reserved) return
        // What it holds stays, and nobody learns what its calls cost.
        if (dies === 0) return void alive.splice(i % 4, 1, open(i % 4))
        const day = ofDay[i % 2]
        if (day) day.used += tokens
        if (day) day.wrong += Math.max(0, tokens - most)
        reserved.settle({ tokens, costUsd: 0 })
      }
      await Promise.all(all.map(call))
      for (const each of opened.splice(0)) await each.close()
      const largest = Math.max(...all.map(({ most }) => most))
      for (const { used, wrong } of ofDay) expect(used).to.be.at.most(budget + wrong + largest)
    })
    await fc.assert(property, { numRuns: 8 })
  })

  it("a customer's budgets of a day and a month refuse its own calls alone, and an override takes their place", async () => {
    const tenant = newTenant()
    const each = limited(
      { customers: { default: { usd_per_day: 3 }, overrides: { dear: { usd_per_day: null, usd_per_month: 5 } } } },
      createRedisHolds(link.run),
    )
    const call = async (customer?: string) => {
      const reserved = await each.reserve({ tenant, customer }, () => MOST, SIGNAL)
      if ('code' in reserved) return reserved.reason
      reserved.settle(MOST)
      return 'called'
    }
    const calls = async (customer?: string) => [
      await call(customer),
      await call(customer),
      await call(customer),
      await call(customer),
    ]
    expect(await calls('usual')).to.deep.equal(['called', 'called', 'usd_per_day', 'usd_per_day'])
    expect(await calls('dear')).to.deep.equal(['called', 'called', 'called', 'usd_per_month'])
    expect(await calls('other')).to.deep.equal(['called', 'called', 'usd_per_day', 'usd_per_day'])
    expect(await calls()).to.deep.equal(['called', 'called', 'called', 'called'])
  })

  it('a call that waits for the budget of one customer holds up no call of another', async () => {
    const tenant = newTenant()
    const each = limited({ customers: { default: { tokens_per_day: 150 } } }, SINGLE_PROCESS)
    const reserve = async (customer: string) =>
      (await each.reserve({ tenant, customer }, () => MOST, SIGNAL)) as Reservation
    const first = await reserve('a')
    const waiting = reserve('a')
    const other = await reserve('b')
    first.settle({ tokens: 10, costUsd: 0 })
    for (const begun of [other, await waiting]) begun.settle(MOST)
  })

  for (const [form, open, count] of FORMS)
    it(`of ${form} no more calls are at work than concurrent_model_calls, and each has its turn`, async () => {
      const tenant = newTenant()
      const all = Array.from({ length: count }, () => limited({ concurrent_model_calls: 2 }, open()))
      let [atWork, most, ended] = [0, 0, 0]
      const call = async (each: Reservations) => {
        const reserved = (await each.reserve({ tenant }, () => MOST, SIGNAL)) as Reservation
        most = Math.max(most, ++atWork)
        await nextTurn()
        atWork--
        ended++
        reserved.settle(MOST)
      }
      await Promise.all(Array.from({ length: 8 }, (_, i) => call(all[i % count] ?? limited({}, open()))))
      expect([most, ended]).to.deep.equal([2, 8])
    })

  it('a call that finds no room waits, in order, until another one ends, and begins with what is left', async () => {
    const tenant = newTenant()
    const each = process(150, SINGLE_PROCESS)
    const first = (await each.reserve({ tenant }, () => MOST, SIGNAL)) as Reservation
    const began: string[] = []
    const waiting = () => Promise.resolve(each.reserve({ tenant }, () => MOST, SIGNAL))
    const second = waiting().then((reserved) => began.push('second') && reserved)
    const third = waiting().then((reserved) => began.push('third') && reserved)
    await settled()
    expect(began).to.deep.equal([])
    first.settle({ tokens: 10, costUsd: 0 })
    ;((await second) as Reservation).settle({ tokens: 150, costUsd: 0 })
    expect(await third).to.include({ code: 'budget_exhausted', reason: 'tokens_per_day' })
    expect(began).to.deep.equal(['second', 'third'])
  })

  it('one that waits too long is refused, and can be tried again; one that is aborted is let go', async () => {
    const tenant = newTenant()
    const each = process(150, SINGLE_PROCESS, null, 30)
    await each.reserve({ tenant }, () => MOST, SIGNAL)
    expect(await each.reserve({ tenant }, () => MOST, SIGNAL)).to.include({ reason: 'budget_reserved' })
    const left = new AbortController()
    const leaving = each.reserve({ tenant }, () => MOST, left.signal)
    left.abort()
    expect(await leaving).to.have.property('settle')
  })

  it('a call that is aborted while room is asked for holds nothing afterwards, and the one behind it has its turn', async () => {
    const answer = Promise.withResolvers<void>()
    const asked: number[] = []
    const holds: BudgetHolds = {
      async ask(tenant, requests) {
        asked.push(requests[0]?.hold.atWork.tokens ?? 0)
        await answer.promise
        return SINGLE_PROCESS.ask(tenant, requests)
      },
    }
    const [tenant, each, left] = [newTenant(), process(1_000_000, holds), new AbortController()]
    const leaving = each.reserve({ tenant }, () => MOST, left.signal)
    const behind = each.reserve({ tenant }, () => MOST, SIGNAL)
    await until(() => asked.length === 1, { what: 'room to be asked for' })
    left.abort()
    for (const reserving of [leaving, behind]) {
      ;((await reserving) as Reservation).settle(NOTHING_SPENT)
      answer.resolve()
    }
    ;((await each.reserve({ tenant }, () => ({ tokens: 500_000, costUsd: 0 }), SIGNAL)) as Reservation).settle(MOST)
    expect(asked.at(-1), 'tokens that calls at work hold').to.equal(0)
  })

  it('far from its limit a tenant asks the holds once for many calls, the more calls it makes', async () => {
    const tenant = newTenant()
    let asked = 0
    const holds: BudgetHolds = { ask: (...args) => (asked++, SINGLE_PROCESS.ask(...args)) }
    const each = process(1_000_000, holds)
    for (let i = 0; i < 90; i++) ((await each.reserve({ tenant }, () => MOST, SIGNAL)) as Reservation).settle(MOST)
    expect(asked).to.be.at.most(7)
  })

  it('what was held for many calls is given back when they become few', () => {
    const standing = {
      payer: { tenant: newTenant() },
      name: '2026-11-22',
      known: NOTHING_SPENT,
      limit: { ...MOST, calls: Number.POSITIVE_INFINITY },
    }
    const hold = new Hold(standing)
    const call = () => hold.begin({ ...MOST, calls: 0 })
    for (let i = 0; i < 40; i++) call()
    expect(hold.request(standing, MOST).hold.reserve.tokens).to.equal(161 * MOST.tokens)
    hold.take({ granted: 'reserve', spent: NOTHING_SPENT })
    expect(hold.isDue()).to.equal(false)
    for (let i = 0; i < 20; i++) call()
    expect(hold.isDue()).to.equal(false)
    call()
    expect(hold.isDue()).to.equal(true)
  })

  it('what a process held that has died is free after its time, and what it has spent still counts', async () => {
    const tenant = newTenant()
    const holds = createRedisHolds(link.run)
    const day = new Date().toISOString().slice(0, 10)
    const limit = { tokens: 100, costUsd: Number.POSITIVE_INFINITY, calls: Number.POSITIVE_INFINITY }
    const ask = async (id: string, next: number) => {
      const request = {
        ...{ name: day, id, known: NOTHING_SPENT, limit },
        own: { now: { tokens: id === 'dead' ? 40 : 0, costUsd: 0 }, told: NOTHING_SPENT },
        hold: {
          atWork: NOTHING_HELD,
          next: { ...NOTHING_HELD, tokens: next },
          reserve: { ...NOTHING_HELD, tokens: Number.MAX_SAFE_INTEGER },
        },
      }
      return (await holds.ask(tenant, [request]))[0]
    }
    expect(await ask('dead', 50)).to.include({ granted: 'next' })
    expect(await ask('other', 50)).to.include({ granted: 'lacking' })
    const key = `budget:{${tenant}}:${day}`
    const past = {
      name: 'testPast',
      keys: 1,
      lua: `local v = redis.call('HGET', KEYS[1], 'dead'); return redis.call('HSET', KEYS[1], 'dead', (string.gsub(v, '%S+%s*$', '1')))`,
    }
    await link.run(past, [key], [])
    expect(await ask('other', 50)).to.deep.equal({ granted: 'next', spent: { tokens: 40, costUsd: 0 } })
  })

  it('while the holds cannot be reached what is known of the day decides', async () => {
    const away: BudgetHolds = { ask: async () => Promise.reject(new AppError('unavailable', 'away')) }
    const tenant = newTenant()
    const each = process(150, away)
    const first = (await each.reserve({ tenant }, () => MOST, SIGNAL)) as Reservation
    const second = (await each.reserve({ tenant }, () => MOST, SIGNAL)) as Reservation
    first.settle(MOST)
    second.settle(MOST)
    expect(await each.reserve({ tenant }, () => MOST, SIGNAL)).to.include({ code: 'budget_exhausted' })
  })
})
