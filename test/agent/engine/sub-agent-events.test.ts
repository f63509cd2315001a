import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { AgentTree } from '../../../shared/agent/engine/account.ts'
import { type Lineage } from '../../../shared/agent/engine/sub-agents.ts'
import type { AgentTask } from '../../../shared/agent/tools/port.ts'
import { type AgentEvent, errorEvent, type RunErrorCode } from '../../../shared/kernel/events.ts'
import { until } from '../../support/until.ts'
import { DONE } from '../../worker/events.ts'
import { ANSWER, lineageOf, setUp, TASK } from './sub-agents-setup.ts'

describe('the events and the report of a sub-agent', () => {
  it('D4.13: start, wrapped events and end carry its id, and that of a calling sub-agent', async () => {
    const tree = new AgentTree()
    const { agents, emitted } = setUp({ tree, caller: lineageOf(tree, 1) })
    await agents.run(TASK)
    expect(emitted.map(({ type }) => type)).to.deep.equal([
      'subagent_start',
      'subagent_event',
      'subagent_event',
      'subagent_end',
    ])
    const ids = new Set(emitted.map((event) => 'subagent_id' in event && event.subagent_id))
    expect(ids.size).to.equal(1)
    for (const event of emitted) expect(event).to.include({ parent_subagent_id: 'sub_1' })
    expect(emitted[0]).to.include({ description: 'task', model: 'm' })
    expect(emitted[1]).to.include({ event_type: 'text', text: 'answer' })
    expect(emitted[3]).to.include({ status: 'completed', result: 'answer' }).and.not.have.property('error')
  })

  it('D4.13: a permission request and its decision follow their wrapped forms at once, before the next event', async () => {
    const request: AgentEvent = {
      type: 'permission_request',
      id: 'perm_1',
      tool_name: 'Write',
      input: {},
      message: '?',
      tool_use_id: 'c1',
      expires_at: '2026-11-23T12:00:00.000Z',
    }
    const resolved: AgentEvent = {
      type: 'permission_resolved',
      id: 'perm_1',
      tool_use_id: 'c1',
      tool_name: 'Write',
      allow: false,
      how: 'timeout',
      reason: '',
    }
    const { agents, emitted } = setUp({ events: [request, resolved, ...ANSWER] })
    await agents.run(TASK)
    expect(emitted[1]).to.include({ type: 'subagent_event', event_type: 'permission_request', id: 'perm_1' })
    expect(emitted[2]).to.equal(request)
    expect(emitted[3]).to.include({ type: 'subagent_event', event_type: 'permission_resolved', id: 'perm_1' })
    expect(emitted[4]).to.equal(resolved)
  })

  it('the result is the text of the last turn', async () => {
    const turn = (turn_number: number): AgentEvent => ({ type: 'turn_start', turn_number, model: 'm' })
    const text = (value: string): AgentEvent => ({ type: 'text', text: value })
    const { agents } = setUp({ events: [turn(1), text('first'), turn(2), text('a'), text('b'), DONE] })
    expect(await agents.run(TASK)).to.deep.equal({ status: 'completed', result: 'a\nb' })
  })

  const ends: [RunErrorCode, string][] = [
    ['cancelled', 'cancelled'],
    ['session_deleted', 'cancelled'],
    ['worker_draining', 'cancelled'],
    ['worker_lost', 'cancelled'],
    ['timeout', 'failed'],
    ['max_turns_exceeded', 'failed'],
  ]
  for (const [code, status] of ends) {
    it(`a sub-agent that ends with ${code} is reported as ${status}, with the error`, async () => {
      const { agents, emitted } = setUp({ events: [errorEvent(code, 'why')] })
      expect(await agents.run(TASK)).to.deep.equal({ status, error: 'why', result: '' })
      expect(emitted.at(-1)).to.include({ type: 'subagent_end', status, error: 'why' })
    })
  }

  it('a sub-agent without a terminal event is reported as failed', async () => {
    expect(await setUp({ events: [] }).agents.run(TASK)).to.include({ status: 'failed' })
    const events = ANSWER.slice(0, 1)
    expect(await setUp({ events }).agents.run(TASK)).to.include({ status: 'failed', result: 'answer' })
  })

  it('D5.3: its place in the tree is one level below its caller, under its own id', async () => {
    const tree = new AgentTree()
    for (const [caller, depth] of [
      [undefined, 1],
      [lineageOf(tree, 1), 2],
    ] as const) {
      const children: Lineage[] = []
      async function* launch(_task: AgentTask, child: Lineage) {
        children.push(child)
        yield DONE
      }
      const { agents, emitted } = setUp({ tree, caller, launch })
      await agents.run(TASK)
      const [start] = emitted
      const id = start?.type === 'subagent_start' && start.subagent_id
      expect(id).to.match(/^sub_[0-9a-f]{32}$/)
      expect(children[0]).to.include({ tree, depth, id })
    }
  })

  it('reads its next event only when there is room on the root’s stream', async () => {
    const rooms: (() => void)[] = []
    const emit = () => new Promise<void>((resolve) => rooms.push(resolve))
    const { agents } = setUp({ emit })
    const running = agents.run(TASK)
    for (let emitted = 1; emitted <= 4; emitted++) {
      await until(() => rooms.length === emitted, { what: `event ${emitted} to be emitted` })
      await nextLoopTurn()
      expect(rooms).to.have.length(emitted)
      rooms.at(-1)?.()
    }
    await running
  })

  it('the end holds the duration, the start no empty description', async () => {
    const { agents, emitted } = setUp()
    await agents.run({ ...TASK, description: '' })
    const end = emitted.at(-1)
    expect(emitted[0]).not.to.have.property('description')
    expect(end?.type === 'subagent_end' && end.duration_ms).to.be.within(0, 60_000)
  })

  const results: [what: string, result: string, inEvent: string][] = [
    ['2,048 bytes is whole', 'x'.repeat(2_048), 'x'.repeat(2_048)],
    ['2,049 bytes is cut', 'x'.repeat(2_049), `${'x'.repeat(2_048)}...`],
    ['characters of two bytes is cut between two of them', `x${'é'.repeat(1_100)}`, `x${'é'.repeat(1_023)}...`],
    [
      '2,051 bytes with an invalid character keeps that character',
      `\ufffd${'x'.repeat(2_048)}`,
      `\ufffd${'x'.repeat(2_045)}...`,
    ],
  ]
  for (const [what, result, inEvent] of results) {
    it(`api.md Limits: a result of ${what} in the event, and whole in the report`, async () => {
      const { agents, emitted } = setUp({ events: [{ type: 'text', text: result }, DONE] })
      expect(await agents.run(TASK)).to.include({ result })
      expect(emitted.at(-1)).to.include({ result: inEvent })
    })
  }
})
