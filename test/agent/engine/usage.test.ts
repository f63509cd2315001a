import { expect } from 'chai'
import { Account, AgentTree } from '../../../shared/agent/engine/account.ts'
import {
  addSpent,
  addTurn,
  done,
  estimateUsage,
  startTotals,
  turnEnd,
  wholeUsage,
  withTotals,
} from '../../../shared/agent/engine/usage.ts'
import type { ModelRoute, Usage } from '../../../shared/agent/providers/port.ts'
import { errorEvent } from '../../../shared/kernel/events.ts'

const USAGE: Usage = { input: 100, cacheRead: 40, cacheWrite: 30, output: 10 }
const NO_CACHE: Usage = { ...USAGE, cacheRead: 0, cacheWrite: 0 }

const m = (price: number | undefined) => ({ model: 'm', price })

describe('the totals of a run', () => {
  it('D5.7: add up the tokens, costs and turns of its turns', () => {
    const totals = addTurn(addTurn(startTotals(), USAGE, m(0.5)), USAGE, m(0.25))
    expect(totals).to.deep.equal({
      usage: { input: 200, cacheRead: 80, cacheWrite: 60, output: 20 },
      costUsd: 0.75,
      turns: 2,
      unpriced: new Set(),
    })
  })

  it('D4.10: an unknown price counts as 0, and its model is remembered', () => {
    const totals = addTurn(addTurn(startTotals(), USAGE, m(undefined)), USAGE, m(0.25))
    expect(totals).to.deep.include({ costUsd: 0.25, turns: 2, unpriced: new Set(['m']) })
    expect(addTurn(startTotals(), USAGE, m(0))).to.deep.include({ unpriced: new Set() })
  })

  it('D5.7: tokens of sub-agents are added without a turn', () => {
    const totals = addSpent(addTurn(startTotals(), USAGE, m(0.5)), USAGE, 1)
    expect(totals).to.deep.include({ usage: { input: 200, cacheRead: 80, cacheWrite: 60, output: 20 } })
    expect(totals).to.include({ costUsd: 1.5, turns: 1 })
  })
})

describe('the events that carry usage', () => {
  it('D4.3: turn_end holds the tokens and the cost of the turn', () => {
    expect(turnEnd(3, USAGE, 0.5)).to.deep.equal({
      type: 'turn_end',
      turn_number: 3,
      input_tokens: 100,
      output_tokens: 10,
      cost_usd: 0.5,
      cache_read_tokens: 40,
      cache_write_tokens: 30,
    })
  })

  it('D4.3: done holds the totals', () => {
    expect(done(addTurn(startTotals(), USAGE, m(0.5)), 'stop_sequence')).to.deep.equal({
      type: 'done',
      total_input_tokens: 100,
      total_output_tokens: 10,
      total_tokens: 110,
      cost_usd: 0.5,
      turn_count: 1,
      stop_reason: 'stop_sequence',
      cache_read_tokens: 40,
      cache_write_tokens: 30,
    })
  })

  it('the error of a failed run holds the totals of its complete turns', () => {
    const error = errorEvent('timeout', 'too slow')
    expect(withTotals(error, addTurn(startTotals(), NO_CACHE, m(0.5)))).to.deep.equal({
      ...error,
      total_input_tokens: 100,
      total_output_tokens: 10,
      total_tokens: 110,
      cost_usd: 0.5,
      turn_count: 1,
    })
  })

  it('D4.10: cache tokens are left out where there are none', () => {
    expect(turnEnd(1, NO_CACHE, 0)).not.to.have.any.keys('cache_read_tokens', 'cache_write_tokens')
    expect(turnEnd(1, { ...NO_CACHE, cacheRead: 1 }, 0)).to.include({ cache_read_tokens: 1 })
    expect(turnEnd(1, { ...NO_CACHE, cacheWrite: 1 }, 0)).to.include({ cache_write_tokens: 1 })
  })

  it('an answer that was cut off is estimated at four characters a token, rounded up', () => {
    expect(estimateUsage(7, 8)).to.deep.equal({ input: 7, cacheRead: 0, cacheWrite: 0, output: 2 })
    expect(estimateUsage(7, 9)).to.include({ output: 3 })
    expect(estimateUsage(0, 0)).to.include({ input: 0, output: 0 })
  })

  it('D5.8: a count that the provider has left out is estimated', () => {
    const estimated = { ...NO_CACHE, input: 7, output: 2 }
    expect(wholeUsage(undefined, estimated)).to.deep.equal(estimated)
    expect(wholeUsage({ ...NO_CACHE, input: 0, output: 5, cacheRead: 1 }, estimated)).to.deep.equal({
      ...estimated,
      output: 5,
      cacheRead: 1,
    })
    expect(wholeUsage({ cacheRead: 0, cacheWrite: 0, input: 9 }, estimated)).to.include({ input: 9, output: 2 })
    expect(wholeUsage({ ...NO_CACHE, input: 9, output: 0 }, estimated)).to.include({ input: 9, output: 0 })
  })
})

describe('the account of a run', () => {
  it('D4.10: keeps a turn before it tells of it, so that nobody who is told finds the turn missing', () => {
    const kept: number[] = []
    const progress = { totals: startTotals(), endTurn: ({ turns }: { turns: number }) => void kept.push(turns) }
    const tree = new AgentTree()
    const account = new Account({ tree, root: tree, priceOf: () => undefined, progress })
    const route = { provider: 'p', model: 'm' } as unknown as ModelRoute
    const end = account.endTurn(route, 'end_turn')
    expect([end.next().value?.type, kept]).to.deep.equal(['warning', [1]])
    expect([end.next().value?.type, kept]).to.deep.equal(['turn_end', [1]])
  })
})
