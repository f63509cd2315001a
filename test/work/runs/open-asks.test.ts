import { expect } from 'chai'
import { type AgentEvent, errorEvent, type RunEvent } from '../../../shared/kernel/events.ts'
import { OpenAsks } from '../../../shared/work/runs/open-asks.ts'

const request = (id: string): AgentEvent & { type: 'permission_request' } => ({
  ...{ type: 'permission_request', id, tool_name: 'Write', tool_use_id: `call of ${id}`, input: {} },
  ...{ message: 'Write wants to write', expires_at: '2026-11-29T12:00:00.000Z' },
})

const resolved = (id: string) => {
  const { tool_name, tool_use_id } = request(id)
  return { id, tool_use_id, tool_name, allow: false, how: 'cancelled', reason: '' } as const
}

const plain = (id: string): RunEvent => ({ type: 'permission_resolved', ...resolved(id) })

function wrapped(id: string, parent?: string): RunEvent {
  const { type, ...fields } = request(id)
  const parentage = { subagent_id: 'sub_1', ...(parent !== undefined && { parent_subagent_id: parent }) }
  return { type: 'subagent_event', ...parentage, event_type: type, ...fields }
}

function takeAfter(...events: RunEvent[]): RunEvent[] {
  const asks = new OpenAsks()
  for (const event of events) asks.note(event)
  return asks.take()
}

describe('the open permission requests of a run', () => {
  it('D37.1: are resolved as cancelled by its end, in their order; what is decided is not resolved again', () => {
    expect(takeAfter(request('p1'), request('p2'), plain('p1'), request('p3'))).to.deep.equal([
      plain('p2'),
      plain('p3'),
    ])
    expect(takeAfter(errorEvent('cancelled', 'x'))).to.deep.equal([])
  })

  it('D4.13: that of a sub-agent is resolved wrapped, and then plain', () => {
    const wrappedEnd = { type: 'subagent_event', subagent_id: 'sub_1', event_type: 'permission_resolved' }
    expect(takeAfter(wrapped('p1'), request('p1'))).to.deep.equal([{ ...wrappedEnd, ...resolved('p1') }, plain('p1')])
    const [nested] = takeAfter(wrapped('p1', 'sub_0'), request('p1'))
    expect(nested).to.include({ subagent_id: 'sub_1', parent_subagent_id: 'sub_0' })
  })

  it('are taken once', () => {
    const asks = new OpenAsks()
    asks.note(request('p1'))
    expect([asks.take().length, asks.take().length]).to.deep.equal([1, 0])
  })

  it('decided: resolves when no decision is waited for, also when one fails', async () => {
    const asks = new OpenAsks()
    const decision = Promise.withResolvers<string>()
    const waits = asks.waitFor(decision.promise).catch(() => 'failed')
    let isDecided = false
    const decided = asks.decided().then(() => (isDecided = true))
    await new Promise(setImmediate)
    expect(isDecided).to.equal(false)
    decision.reject(new Error('a bug'))
    expect([await waits, await decided]).to.deep.equal(['failed', true])
    await asks.decided()
  })
})
