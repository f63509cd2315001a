import { expect } from 'chai'
import { SessionUsage } from '../../../services/worker/sessions/session-usage.ts'
import type { EarlierProgress } from '../../../shared/agent/engine/run-progress.ts'
import { errorEvent, type RunEvent } from '../../../shared/kernel/events.ts'

const turn = (n: number, model = 'm'): RunEvent[] => [
  { type: 'turn_start', turn_number: n, model },
  { type: 'turn_end', turn_number: n, input_tokens: 10, output_tokens: 2, cost_usd: 0.5 },
]
const totals = { total_input_tokens: 100, total_output_tokens: 20, total_tokens: 120, cost_usd: 4, turn_count: 2 }

function play(usage: SessionUsage, events: readonly RunEvent[]): void {
  const count = usage.counter()
  for (const event of events) count(event)
}

describe('the usage of a session', () => {
  it('D23.2: counts each turn, and at the end of a run its totals, sub-agents included', () => {
    const usage = new SessionUsage()
    expect(usage.state).to.deep.equal({
      usage: { input_tokens: 0, output_tokens: 0, cost_usd: 0, turns: 0 },
      model: null,
    })
    const events = [...turn(1), ...turn(2, 'n')]
    play(usage, events)
    const two = { input_tokens: 20, output_tokens: 4, cost_usd: 1, turns: 2 }
    expect(usage.state).to.deep.equal({ usage: two, model: 'n' })
    play(usage, [...turn(1), ...turn(2), { type: 'done', ...totals, stop_reason: 'end_turn' }])
    expect(usage.state).to.deep.equal({
      usage: { input_tokens: 120, output_tokens: 24, cost_usd: 5, turns: 4 },
      model: 'm',
    })
  })

  it('D23.2: a failed run counts with its totals, or with its turns where it has none', () => {
    const usage = new SessionUsage({
      usage: { input_tokens: 1, output_tokens: 1, cost_usd: 1, turns: 1 },
      model: 'old',
    })
    play(usage, [errorEvent('cancelled', 'it was cancelled')])
    expect(usage.state).to.deep.include({ model: 'old' })
    play(usage, [...turn(1), errorEvent('internal', 'a bug')])
    expect(usage.state.usage).to.deep.equal({ input_tokens: 11, output_tokens: 3, cost_usd: 1.5, turns: 2 })
    play(usage, [...turn(1), { ...errorEvent('max_turns_exceeded', 'too many'), ...totals }])
    expect(usage.state.usage).to.deep.equal({ input_tokens: 111, output_tokens: 23, cost_usd: 5.5, turns: 4 })
  })

  it('D32.9c: a run that is cancelled before it goes on here counts with its sub-agents and with the answer whose tools were at work', () => {
    const spent = (input: number, output: number, costUsd: number) => ({
      usage: { input, output, cacheRead: 0, cacheWrite: 0 },
      ...{ costUsd, turns: 0, unpriced: [] },
    })
    const answer = { blocks: [], toolCalls: [], outputChars: 0, outcome: 'complete' as const }
    const earlier: EarlierProgress = {
      state: {
        ...{ hasBegun: true, isPlanning: false, totals: { ...spent(10, 2, 0.5), turns: 1 } },
        agents: { started: 1, spent: spent(30, 3, 1) },
      },
      step: {
        ...{ turn: 2, model: 'm', calls: {}, agents: {}, agentAsks: [] },
        answer: { ...answer, spent: { usage: spent(7, 1, 0).usage, price: 2 } },
      },
    }
    const usage = new SessionUsage()
    play(usage, turn(1))
    usage.addRestOf(earlier)
    expect(usage.state.usage).to.deep.equal({ input_tokens: 47, output_tokens: 6, cost_usd: 3.5, turns: 1 })
  })

  it('D4.10: a run that ends with a queued plan counts with its totals', () => {
    const usage = new SessionUsage()
    play(usage, [...turn(1), { type: 'plan_queued', plan_id: 'plan_1', ...totals }])
    expect(usage.state.usage).to.deep.equal({ input_tokens: 100, output_tokens: 20, cost_usd: 4, turns: 2 })
  })
})
