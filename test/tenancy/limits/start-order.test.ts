import { expect } from 'chai'
import fc from 'fast-check'
import { PRIORITIES, type Priority } from '../../../shared/agent/providers/port.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { MemoryRunPlaces } from '../../../shared/tenancy/limits/memory-places.ts'
import type { StartLine, WaitingStart } from '../../../shared/tenancy/limits/port.ts'
import {
  BATCH_ITEMS,
  placeLimits,
  retryAfterSecs,
  standings,
  startsInOrder,
} from '../../../shared/tenancy/limits/start-order.ts'
import { NO_LIMITS } from '../../../shared/tenancy/tenant-config/config.ts'

const CUSTOMERS = ['x', 'y', 'z']

/** What happens in a story. `which` chooses among those that wait, or are at work. */
const STEPS = fc.array(
  fc.record({
    kind: fc.constantFrom('join', 'join', 'leave', 'end', 'end'),
    ...{ priority: fc.constantFrom(...PRIORITIES), customer: fc.constantFrom(...CUSTOMERS) },
    ...{ which: fc.nat(), ms: fc.nat(1_000) },
  }),
  { minLength: 200, maxLength: 200 },
)

const waiting = (text: string, since: number): WaitingStart => {
  const [runId = '', priority = '', customer] = text.split(' ')
  return { runId, priority: priority as Priority, process: 'p', since, ...(customer && { customer }) }
}

/** Starts that began to wait one after the other, each a millisecond behind the one before. */
const lineOf = (texts: readonly string[], facts: Partial<StartLine> = {}): StartLine => ({
  ...{ now: 1_000, starts: texts.map((text, at) => waiting(text, at)), atWork: 0, lowerAt: 0, runMs: 0 },
  ...{ atWorkOf: new Map(), turnsOf: new Map(), isKeptFree: false, ...facts },
})
const orderOf = (line: StartLine) => startsInOrder(TENANT, line).map(({ runId }) => runId)

describe('the order of starts that wait', () => {
  it('is by priority, then between customers by their turns so far, then by age', () => {
    const starts = ['b batch c', 'n1 normal x', 'n2 normal x', 'n3 normal y', 'i1 interactive x', 'i2 interactive z']
    expect(orderOf(lineOf(starts))).to.deep.equal(['i1', 'i2', 'n3', 'n1', 'n2', 'b'])
    const turnsOf = new Map([
      ['x', 3],
      ['y', 3],
      ['z', 0],
      ['c', 0],
    ])
    expect(orderOf(lineOf(starts, { turnsOf }))).to.deep.equal(['i2', 'i1', 'n3', 'n1', 'n2', 'b'])
    const weighted = { ...NO_LIMITS, customers: { default: { weight: 1 }, overrides: { x: { weight: 2 } } } }
    const line = lineOf(['1', '2', '3', '4', '5', '6'].map((each) => `${each} normal ${Number(each) > 4 ? 'y' : 'x'}`))
    expect(startsInOrder(TENANT, line, weighted).map(({ runId }) => runId)).to.deep.equal([
      '1',
      '5',
      '2',
      '3',
      '6',
      '4',
    ])
  })

  it('D55.2: an item whose turn it is gets no only place that is kept free, and holds up no other start', () => {
    const limits = { ...NO_LIMITS, concurrent_runs: 1 }
    const begins = (isKeptFree: boolean) => {
      const line = lineOf([`item batch ${BATCH_ITEMS}`, 'start interactive'], { now: 9_000, isKeptFree })
      const all = standings(startsInOrder(TENANT, line), line, limits)
      return all.flatMap(({ start, mayBegin }) => (mayBegin ? [start.runId] : []))
    }
    expect([begins(false), begins(true)]).to.deep.equal([['item'], ['start']])
  })

  it('lets one that is not interactive go first when none had its turn for 5 s', () => {
    const starts = ['b batch', 'i1 interactive', 'i2 interactive']
    expect(orderOf(lineOf(starts, { now: 4_999 }))).to.deep.equal(['i1', 'i2', 'b'])
    expect(orderOf(lineOf(starts, { now: 5_000 }))).to.deep.equal(['b', 'i1', 'i2'])
    expect(orderOf(lineOf(starts, { now: 5_000, lowerAt: 1 }))).to.deep.equal(['i1', 'i2', 'b'])
  })

  it('a customer without room holds up no other; the expected start is that of the narrower limit', () => {
    const line = lineOf(['a interactive x', 'b interactive x', 'c interactive y', 'd normal y'], {
      ...{ atWork: 2, atWorkOf: new Map([['x', 1]]), runMs: 6_000 },
    })
    const limits = { ...NO_LIMITS, concurrent_runs: 3, customers: { overrides: { x: { concurrent_runs: 1 } } } }
    const stand = standings(startsInOrder(TENANT, line), line, limits)
    expect(stand.map(({ start, place, mayBegin, waitMs }) => [start.runId, place, mayBegin, waitMs])).to.deep.equal([
      ['a', 1, false, 6_000],
      ['c', 0, true, 0],
      ['b', 2, false, 12_000],
      ['d', 3, false, 6_000],
    ])
  })

  it('who is refused may come back when those before it would have had their turns, and after 5 s where that is not known', () => {
    expect(retryAfterSecs({ waiting: 5, runMs: 7_000 }, 2)).to.equal(21)
    expect(retryAfterSecs({ waiting: 0, runMs: 20 }, 2)).to.equal(1)
    expect(retryAfterSecs({ waiting: 1_000, runMs: 600_000 }, 1)).to.equal(3_600)
    expect(retryAfterSecs({ waiting: 5, runMs: 0 }, 2)).to.equal(5)
  })

  it('in random stories no limit is exceeded, nobody waits beside a free place, and each place is given back', async () => {
    for (const steps of fc.sample(STEPS, { numRuns: 5, seed: 54 })) {
      let now = 0
      const places = new MemoryRunPlaces(() => now)
      const limits = { ...NO_LIMITS, concurrent_runs: 3, customers: { default: { concurrent_runs: 2 } } }
      const [line, atWork] = [new Map<string, WaitingStart>(), new Map<string, WaitingStart>()]
      const placed = ({ runId, customer }: WaitingStart) => ({ tenant: TENANT, runId, customer })
      const look = (joined: WaitingStart[] = [], left: string[] = []) => {
        const news = joined.map((each) => ({ ...each, waitedMs: 0 }))
        return places.look(TENANT, { process: 'p', joined: news, left, customers: CUSTOMERS })
      }
      const join = async (start: WaitingStart) => {
        line.set(start.runId, start)
        await look([start])
      }
      const leave = async (which: number) => {
        const runId = [...line.keys()][which % line.size]
        if (runId !== undefined && line.delete(runId)) await look([], [runId])
      }
      const end = async (which: number) => {
        const start = [...atWork.values()][which % atWork.size]
        if (start && atWork.delete(start.runId)) await places.release(placed(start), 100)
      }
      const give = async () => {
        const seen = await look()
        expect(new Set(seen.starts.map(({ runId }) => runId))).to.deep.equal(new Set(line.keys()))
        for (const { start, mayBegin } of standings(startsInOrder(TENANT, seen), seen, limits)) {
          if (!mayBegin) continue
          const { place } = await places.take(placed(start), placeLimits(limits, start.customer), start.priority)
          expect(place, 'whoever may begin gets a place').to.equal('taken')
          line.delete(start.runId)
          atWork.set(start.runId, start)
        }
        const countOf = (name?: string) => [...atWork.values()].filter(({ customer }) => customer === name).length
        expect(Math.max(...CUSTOMERS.map(countOf))).to.be.at.most(2)
        expect(atWork.size).to.be.at.most(3)
        const lacksRoom = atWork.size === 3 || [...line.values()].every(({ customer }) => countOf(customer) === 2)
        expect(lacksRoom, 'whoever waits lacks room').to.equal(true)
      }
      for (const [id, { kind, priority, customer, which, ms }] of steps.entries()) {
        now += ms
        await places.renew(TENANT, [...atWork.values()].map(placed))
        if (kind === 'join') await join({ runId: `run_${id}`, priority, customer, process: 'p', since: now })
        else await (kind === 'end' ? end : leave)(which)
        await give()
      }
      for (; line.size + atWork.size > 0; await give()) await end(0)
      const { atWork: left, atWorkOf } = await look()
      expect([left, ...atWorkOf.values()]).to.deep.equal([0, 0, 0, 0])
    }
  })
})
