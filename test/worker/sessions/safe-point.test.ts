import { expect } from 'chai'
import { SafePoint } from '../../../services/worker/sessions/safe-point.ts'
import type { RunEvent } from '../../../shared/kernel/events.ts'
import { settled } from '../../support/settled.ts'

const turn = (turn_number: number): RunEvent => ({ type: 'turn_start', turn_number, model: 'm' })
const turnEnd: RunEvent = { type: 'turn_end', turn_number: 1, input_tokens: 1, output_tokens: 1, cost_usd: 0 }
const call = (id: string): RunEvent => ({ type: 'tool_use', id, tool_name: 'Write', input: {} })
const result = (id: string): RunEvent => ({ type: 'tool_result', id, tool_name: 'Write', output: '', is_error: false })
const ask = (id: string, of: string): RunEvent => ({
  ...{ type: 'permission_request', id, tool_use_id: of, tool_name: 'Write', input: {}, message: '?', expires_at: '' },
})
const answer = (id: string): RunEvent => ({
  ...{ type: 'permission_resolved', id, tool_use_id: '', tool_name: 'Write', allow: true, how: 'reply', reason: '' },
})

/** Whether it is reached behind each of the events. */
async function reachedAfter(...events: RunEvent[]): Promise<boolean[]> {
  const reached: boolean[] = []
  for (const [i] of events.entries()) {
    const point = new SafePoint()
    for (const event of events.slice(0, i + 1)) point.note(event, false)
    let isReached = false
    void point.reached().then(() => (isReached = true))
    await settled()
    reached.push(isReached)
  }
  return reached
}

describe('where a run can be left to another worker', () => {
  it('D37.4: while all calls that have no result wait for permission, and behind a complete turn', async () => {
    const asks = [
      call('a'),
      call('b'),
      ask('p', 'a'),
      ask('q', 'b'),
      answer('q'),
      result('b'),
      answer('p'),
      result('a'),
    ]
    expect(await reachedAfter(turn(1), ...asks, turnEnd, turn(2))).to.deep.equal([
      ...[false, false, false, false, true, false, true, false, false],
      true,
      false,
    ])
  })

  it('not while a sub-agent asks: it would begin anew, and its request with it', async () => {
    expect(await reachedAfter(turn(1), call('a'), ask('p', 'of the sub-agent'))).to.deep.equal([false, false, false])
  })

  it('not behind the last turn, whose end comes at once', async () => {
    const point = new SafePoint()
    void point.reached()
    point.note(turnEnd, true)
    expect(point.stay()).to.equal(undefined)
  })

  it('the run stays behind a complete turn as long as it is wanted there, and asks for nothing else meanwhile', async () => {
    const point = new SafePoint()
    point.note(turn(1), false)
    expect(point.stay()).to.equal(undefined)
    const reached = point.reached()
    expect(point.stay()).to.equal(undefined)
    point.note(turnEnd, false)
    await reached
    const staying = point.stay()
    expect(point.stay()).to.equal(staying).and.not.equal(undefined)
    point.leave()
    await staying
    expect(point.stay()).to.equal(undefined)
  })

  it('near the end of the time it is reached at once, also when that comes first', async () => {
    const [late, early] = [new SafePoint(), new SafePoint()]
    const reached = late.reached()
    late.hasten()
    await reached
    early.hasten()
    await early.reached()
    expect(early.stay()).to.equal(undefined)
  })
})
