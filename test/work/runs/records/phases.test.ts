import { expect } from 'chai'
import type { JsonObject, RunEvent } from '../../../../shared/kernel/events.ts'
import { phasesOf } from '../../../../shared/work/runs/records/phases.ts'
import { DONE } from './setup.ts'

const turnStart = (turn_number: number): RunEvent => ({ type: 'turn_start', turn_number, model: 'm' })
const turnEnd = (turn_number: number): RunEvent => ({
  ...{ type: 'turn_end', turn_number, input_tokens: 1, output_tokens: 1, cost_usd: 0 },
})
const toolUse = (id: string): RunEvent => ({ type: 'tool_use', id, tool_name: 'Write', input: {} })
const toolResult = (id: string, is_error = false): RunEvent => ({
  ...{ type: 'tool_result', id, tool_name: 'Write', output: '', is_error },
})
const ask = { id: 'perm_1', tool_use_id: 'call_1', tool_name: 'Write' }
const asked: RunEvent = { type: 'permission_request', ...ask, expires_at: '', input: {}, message: '' }
const resolved: RunEvent = { type: 'permission_resolved', ...ask, allow: true, how: 'reply', reason: '' }
const nested = ({ type, ...fields }: RunEvent): RunEvent => ({
  ...{ type: 'subagent_event', subagent_id: 'sub_1', event_type: type, ...fields },
})

describe('the phases of a run', () => {
  /** Each event 10 ms after the one before it; phases as lines. */
  const linesOf = (...events: RunEvent[]) =>
    phasesOf(events.map((event, i) => ({ seq: i + 1, event, atMs: i * 10 }))).map(
      ({ kind, name, turn, started_ms, ended_ms, failed, subagent_id }) =>
        [kind, name, turn, `${started_ms}–${ended_ms}`, failed && 'failed', subagent_id].filter(Boolean).join(' '),
    )

  it('D20.5: are the calls of the model and of tools, and the waits for permissions within them, by their turns', () => {
    const first = [turnStart(1), toolUse('call_1'), asked, resolved, toolResult('call_1', true), turnEnd(1)]
    expect(linesOf(...first, turnStart(2), turnEnd(2), DONE)).to.deep.equal([
      'model m 1 0–10',
      'tool Write 1 10–40 failed',
      'permission Write 1 20–30',
      'model m 2 60–70',
    ])
  })

  it('D20.5: of calls that go on at the same time are told apart by their ids, also when a later turn uses an id again', () => {
    const turn = (n: number) => [turnStart(n), toolUse('a'), toolUse('b'), toolResult('b'), toolResult('a'), turnEnd(n)]
    expect(linesOf(...turn(1), ...turn(2)).filter((line) => line.startsWith('tool'))).to.deep.equal([
      ...['tool Write 1 10–40', 'tool Write 1 20–30', 'tool Write 2 70–100', 'tool Write 2 80–90'],
    ])
  })

  it('D20.5: of a sub-agent name it, and its end ends what it had begun; its request, which comes twice, counts once', () => {
    const start: RunEvent = {
      type: 'subagent_start',
      subagent_id: 'sub_1',
      description: 'd'.repeat(200),
      start_time_ms: 1,
    }
    const end: RunEvent = { type: 'subagent_end', subagent_id: 'sub_1', duration_ms: 1, status: 'failed', result: '' }
    const own = [nested(turnStart(1)), nested(toolUse('a')), nested(asked), asked]
    expect(linesOf(turnStart(1), toolUse('a'), start, ...own, end, toolResult('a'))).to.deep.equal([
      'model m 1 0–10',
      'tool Write 1 10–80',
      `subagent ${'d'.repeat(120)} 20–70 sub_1`,
      'model m 1 30–40 sub_1',
      'tool Write 1 40–70 sub_1',
      'permission Write 1 50–70 sub_1',
    ])
  })

  it('D20.5: of a tool name its call, and the path that its input names, if that is short', () => {
    const longest = 'p'.repeat(256)
    const callOf = (path: unknown) =>
      phasesOf([{ seq: 1, atMs: 0, event: { ...toolUse('c'), input: { path } } as RunEvent }])[0]
    for (const path of ['a.txt', longest]) expect(callOf(path)).to.include({ tool_use_id: 'c', path })
    for (const path of [`${longest}p`, 7])
      expect(callOf(path)).to.include({ tool_use_id: 'c' }).and.not.have.property('path')
  })

  it('D20.5: are open while the run goes on, and end with it', () => {
    expect(linesOf(turnStart(1))).to.deep.equal(['model m 1 0–null'])
    const cancelled: RunEvent = {
      ...{ type: 'error', error: '', code: 'cancelled', detail: '', suggestion: '', retryable: false },
    }
    expect(linesOf(turnStart(1), toolUse('a'), cancelled)).to.deep.equal(['model m 1 0–10', 'tool Write 1 10–20'])
    expect(linesOf(turnStart(1), cancelled), 'nothing has failed').to.deep.equal(['model m 1 0–10'])
    const failed = { ...cancelled, code: 'timeout' } as RunEvent
    expect(linesOf(turnStart(1), toolUse('a'), failed), 'no model was asked').to.deep.equal([
      ...['model m 1 0–10', 'tool Write 1 10–20'],
    ])
  })

  it('D20.5: are also the pauses before a model is called again, and the calls of a model that another one has taken over', () => {
    const warning = (code: 'transport_retrying' | 'provider_failover', detail: JsonObject): RunEvent => ({
      ...{ type: 'warning', code, message: '', detail },
    })
    const pause = warning('transport_retrying', { reason: 'http_529', delay_ms: 15 })
    const takeOver = warning('provider_failover', { to: { provider: 'p', model: 'spare' }, reason: 'http_529' })
    expect(linesOf(turnStart(1), pause, turnStart(1), takeOver, turnEnd(1), takeOver, DONE)).to.deep.equal([
      'model m 1 0–30 failed',
      'retry http_529 1 10–25',
      'model spare 1 30–40',
    ])
    const other = warning('transport_retrying', { reason: 'x', delay_ms: 5 })
    expect(linesOf(turnStart(1), { ...other, code: 'context_compacted' } as RunEvent, DONE)).to.deep.equal([
      'model m 1 0–20',
    ])
    const failed: RunEvent = {
      ...{ type: 'error', error: '', code: 'timeout', detail: '', suggestion: '', retryable: true },
    }
    expect(linesOf(turnStart(1), failed)).to.deep.equal(['model m 1 0–10 failed'])
    expect(linesOf(turnStart(1), pause, DONE), 'no longer than the run').to.deep.equal([
      'model m 1 0–20',
      'retry http_529 1 10–20',
    ])
  })

  it('D20.5: are the first 300', () => {
    const calls = Array.from({ length: 400 }, (_, i) => toolUse(`call_${i}`))
    expect(linesOf(turnStart(1), ...calls, DONE)).to.have.length(300)
  })
})
