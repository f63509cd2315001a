import { expect } from 'chai'
import { AgentEngine, makeCalls } from '../../../shared/client/client.ts'
import { type Answer, fakeServer, json, refusal, type SentEvent, stream } from '../fake-server.ts'

const call = (id: number, use: string): SentEvent => ({
  ...{ id, event: 'tool_use' },
  data: { id: use, tool_name: 'get_order', input: { id: use }, executor: 'client', expires_at: '2026-11-25T10:00:00Z' },
})
const ofServer: SentEvent = { id: 2, event: 'tool_use', data: { id: 's', tool_name: 'Read', input: {} } }
const done: SentEvent = { id: 9, event: 'done', data: { stop_reason: 'end_turn' } }
const taken: Answer = () => json({ status: 'ok' })

describe('the calls of the caller’s own tools at the client', () => {
  it('D45.1a: are made once each, and what they return or throw is the answer; one that comes too late counts no more', async () => {
    const events = [call(1, 'a'), ofServer, call(3, 'b'), call(4, 'c'), call(5, 'd'), call(6, 'a'), done]
    const { options, sent } = fakeServer([
      () => stream(events, { 'x-run-id': 'run_1' }),
      taken,
      taken,
      () => refusal(409, 'conflict_error'),
    ])
    const run = new AgentEngine(options).run({ prompt: 'hi', client_tools: [{ name: 'get_order' }] })
    const answers: Record<string, () => unknown> = {
      a: () => ({ state: 'sent' }),
      b: () => {
        throw new Error('no such order')
      },
      c: () => 'late',
      d: () => undefined,
    }
    const made: string[] = []
    makeCalls(run, async ({ id }) => {
      made.push(id)
      return answers[id]?.()
    })
    await run.result()
    expect(made).to.deep.equal(['a', 'b', 'c', 'd'])
    const posted = sent.slice(1).map(({ path, body }) => [path, body])
    expect(posted).to.have.deep.members([
      ['/runs/run_1/tool-calls/a', { output: '{"state":"sent"}' }],
      ['/runs/run_1/tool-calls/b', { output: 'Error: no such order', is_error: true }],
      ['/runs/run_1/tool-calls/c', { output: 'late' }],
    ])
  })
})
