import { expect } from 'chai'
import { errorEvent, type RunErrorCode, type RunEvent, type WarningEvent } from '../../../shared/kernel/events.ts'
import { outcomeOf, RunFigures } from '../../../shared/work/runs/run-figures.ts'
import { DONE } from '../../worker/events.ts'

const TURN_END: RunEvent = {
  ...{
    type: 'turn_end',
    turn_number: 1,
    input_tokens: 10,
    output_tokens: 2,
    cost_usd: 0.5,
    cache_read_tokens: 4,
    cache_write_tokens: 3,
  },
}
const TOOL_USE: RunEvent = { type: 'tool_use', id: 'c1', tool_name: 'Write', input: {} }
const ASKED: RunEvent = {
  ...{ type: 'permission_request', id: 'perm_1', tool_use_id: 'c1', tool_name: 'Write', input: {}, message: '' },
  expires_at: '2026-11-23T12:00:00.000Z',
}
const warning = (code: WarningEvent['code'], detail = {}): WarningEvent => ({
  ...{ type: 'warning', code, message: '', detail },
})
const RETRY = warning('transport_retrying')
const FAILOVER = warning('provider_failover', { reason: 'timeout' })
const SKIPPED = warning('provider_failover', { reason: 'provider_skipped' })
const planEnded = (status: 'done' | 'failed' | 'cancelled') =>
  ({ type: 'plan_ended', plan_id: 'plan_1', status }) as unknown as RunEvent
const result = (verdict: 'ok' | 'invalid_output') => ({ type: 'result', verdict }) as unknown as RunEvent

/** As the event of a sub-agent. */
const nested = ({ type, ...fields }: RunEvent): RunEvent => ({
  ...{ type: 'subagent_event', subagent_id: 'sub_1', event_type: type },
  ...(fields as object),
})

function figuresOf(...events: RunEvent[]): RunFigures {
  const figures = new RunFigures()
  for (const event of events) figures.note(event)
  return figures
}

describe('the figures of a run', () => {
  it('add up its turns, until its end says what everything has cost', () => {
    const turns = figuresOf({ type: 'turn_start', turn_number: 1, model: 'm' }, TURN_END, TURN_END)
    expect(turns).to.include({ model: 'm', turns: 2 })
    const cached = { cache_read_tokens: 8, cache_write_tokens: 6 }
    expect(turns.spent).to.deep.equal({ input_tokens: 20, output_tokens: 4, cost_usd: 1, ...cached })
    const totals = { total_input_tokens: 50, total_output_tokens: 9, cost_usd: 2 }
    const ended = figuresOf(TURN_END, { ...DONE, ...totals })
    const none = { cache_read_tokens: 0, cache_write_tokens: 0 }
    expect(ended.spent).to.deep.equal({ input_tokens: 50, output_tokens: 9, cost_usd: 2, ...none })
    expect(figuresOf(TURN_END, result('ok')).spent.input_tokens).to.equal(10)
  })

  it('D50: name the files that were delivered, each once, by an event of an agent or with the answer of a flow', () => {
    const file = { file_id: 'file_1', name: 'a.txt', media_type: 'text/plain', bytes: 1 }
    const delivered: RunEvent = { type: 'artifact', ...file, tool_use_id: 'c1' }
    expect(figuresOf(delivered, delivered).artifacts).to.deep.equal([file])
    const answer = { ...result('ok'), artifacts: [file] } as RunEvent
    expect(figuresOf(answer).artifacts).to.deep.equal([file])
    expect(figuresOf(result('ok')).artifacts).to.equal(undefined)
  })

  it('count the tool calls of sub-agents too, and their permission requests, which come twice, once', () => {
    expect(figuresOf(TOOL_USE, ASKED)).to.include({ toolCalls: 1, permissions: 1 })
    expect(figuresOf(nested(TURN_END), nested(TOOL_USE), nested(ASKED), ASKED)).to.include({
      toolCalls: 1,
      permissions: 1,
      turns: 0,
    })
  })

  it('count the requests to providers by their outcome, those of sub-agents too', () => {
    const events = [TURN_END, RETRY, FAILOVER, FAILOVER, SKIPPED, warning('output_truncated')]
    const of = (...list: RunEvent[]) => figuresOf(...list).requests
    const expected = { ok: 1, retried: 1, failed_over: 2, failed: 0 }
    expect(of(...events)).to.deep.equal(expected)
    expect(of(...events.map(nested))).to.deep.equal(expected)
    const failed = (code: RunErrorCode) => errorEvent(code, '')
    for (const show of [(event: RunEvent) => event, nested]) {
      expect(of(show(failed('provider_auth')))).to.deep.equal({ ok: 0, retried: 0, failed_over: 0, failed: 1 })
      expect(of(show(failed('cancelled')), show(DONE)).failed).to.equal(0)
    }
  })

  it('tell that another model has taken over, and no other warning', () => {
    const told = [RETRY, FAILOVER, SKIPPED].filter((event) => new RunFigures().note(event) === event)
    expect(told).to.deep.equal([FAILOVER, SKIPPED])
  })

  it('have the times of the first event and of the first piece of an answer, since the run began', () => {
    const figures = figuresOf({ type: 'turn_start', turn_number: 1, model: 'm' })
    expect(figures.firstTokenMs).to.equal(undefined)
    const first = figures.firstEventMs
    expect(first).to.be.within(0, 60_000)
    figures.note({ type: 'text_delta', text: 'a' })
    const token = figures.firstTokenMs
    figures.note(TOOL_USE)
    expect([figures.firstEventMs, figures.firstTokenMs]).to.deep.equal([first, token])
    expect(token).to.be.at.least(first ?? Number.NaN)
  })

  it('have the code of the end', () => {
    const ends: [RunEvent, string, string][] = [
      [DONE, 'ok', 'done'],
      [errorEvent('internal', ''), 'internal', 'failed'],
      [errorEvent('cancelled', ''), 'cancelled', 'cancelled'],
      [errorEvent('session_deleted', ''), 'session_deleted', 'cancelled'],
      [result('ok'), 'ok', 'done'],
      [result('invalid_output'), 'invalid_output', 'done'],
      [planEnded('done'), 'ok', 'done'],
      [planEnded('failed'), 'plan_failed', 'failed'],
      [planEnded('cancelled'), 'cancelled', 'cancelled'],
    ]
    for (const [event, code, outcome] of ends)
      expect([figuresOf(event).code, outcomeOf(event)], JSON.stringify(event)).to.deep.equal([code, outcome])
  })
})
