import { expect } from 'chai'
import type { AgentEvent, FlowEvent, TurnEndEvent, WarningEvent } from '../../../../shared/kernel/events.ts'
import { FlowLog, RunCost } from '../../../../shared/work/flows/execute/flow-log.ts'

const turnEnd = (input_tokens: number): TurnEndEvent => ({
  type: 'turn_end',
  turn_number: 1,
  input_tokens,
  output_tokens: 1,
  cost_usd: 0.25,
})

const WARNING: WarningEvent = { type: 'warning', code: 'transport_retrying', message: 'again', detail: { attempt: 1 } }

function logWith(send: (event: FlowEvent) => Promise<void> = async () => {}) {
  let now = 0
  return new FlowLog({ send, now: () => now++ })
}

describe('the log of an execution', () => {
  it('sends each event with its time, and keeps it for the replay', async () => {
    const sent: FlowEvent[] = []
    const log = logWith(async (event) => void sent.push(event))
    await log.turnEnded({ agent: 'critic', model: 'm1', problems: [] }, turnEnd(7))
    await log.warn('critic', WARNING)
    const tokens = { input_tokens: 7, output_tokens: 1, cost_usd: 0.25 }
    const progress = { agent: 'critic', turn_number: 1, model: 'm1', ...tokens }
    const [first, second] = ['1970-01-01T00:00:00.000Z', '1970-01-01T00:00:00.001Z'] as const
    expect(sent).to.deep.equal([
      { type: 'progress', ...progress, at: first },
      { ...WARNING, agent: 'critic', at: second },
    ])
    const { type, ...warning } = WARNING
    expect(log.timeline).to.deep.equal([
      { event: 'progress', at: first, data: progress },
      { event: type, at: second, data: { ...warning, agent: 'critic' } },
    ])
  })

  it('keeps 1,000 events, and sends the later ones too', async () => {
    let sent = 0
    const log = logWith(async () => void sent++)
    for (let i = 0; i < 1_001; i++) await log.warn('main', WARNING)
    expect([log.timeline.length, sent]).to.deep.equal([1_000, 1_001])
  })

  it('waits until the reader has room', async () => {
    const room = Promise.withResolvers<void>()
    const order: string[] = []
    const waiting = logWith(() => room.promise)
      .warn('main', WARNING)
      .then(() => order.push('sent'))
    await Promise.resolve()
    order.push('room')
    room.resolve()
    await waiting
    expect(order).to.deep.equal(['room', 'sent'])
  })
})

describe('the cost of one run', () => {
  const nested = (event: TurnEndEvent): AgentEvent => ({
    ...event,
    type: 'subagent_event',
    subagent_id: 'sub_1',
    event_type: 'turn_end',
  })

  const costOf = (...events: AgentEvent[]) => {
    const log = logWith()
    const cost = new RunCost()
    for (const event of events) {
      const spent = cost.of(event)
      if (spent) log.spend(spent)
    }
    return log.totals
  }

  it('of a failed run is that of its turns and of its sub-agents', () => {
    const totals = costOf(turnEnd(7), nested(turnEnd(5)), {
      ...nested(turnEnd(5)),
      event_type: 'turn_start',
    } as AgentEvent)
    expect(totals).to.include({ turns: 0, input_tokens: 12, output_tokens: 2, cost_usd: 0.5 })
  })

  it('D5.7: of a good run is its total, which holds summaries too, and counts nothing twice', () => {
    const done: AgentEvent = {
      type: 'done',
      total_input_tokens: 20,
      total_output_tokens: 4,
      total_tokens: 24,
      cost_usd: 0.75,
      turn_count: 1,
      stop_reason: 'end_turn',
    }
    expect(costOf(turnEnd(7), nested(turnEnd(5)), done)).to.include({
      input_tokens: 20,
      output_tokens: 4,
      cost_usd: 0.75,
    })
  })
})
