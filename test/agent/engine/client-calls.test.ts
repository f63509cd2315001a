import { expect } from 'chai'
import { withOwnIds } from '../../../shared/agent/engine/client-calls.ts'
import type { AskRequest, Decision } from '../../../shared/agent/engine/permissions.ts'
import { fail, succeed } from '../../../shared/agent/tools/port.ts'
import type { AgentEvent } from '../../../shared/kernel/events.ts'
import { call, collect, resourcesOf, type Setup, SOON, stepOf, tool, typesOf } from './tool-step-setup.ts'

const OWN = { ...tool('get_order', async () => fail('never here')), defaultPolicy: 'client' as const }
const CALLS = [call('a', 'get_order', '{"id":1}'), call('b', 'get_order', '{"id":2}')]

/** Asks of which each is decided by the id of its call; a call without a decision waits. */
function asking(decisions: Record<string, Decision> = {}) {
  const asked: AskRequest[] = []
  const openAsk: Setup['openAsk'] = async (request) => {
    asked.push(request)
    const made = decisions[request.toolUseId]
    return {
      id: `call_${request.toolUseId}`,
      expiresAt: SOON,
      decision: made ? Promise.resolve(made) : new Promise<Decision>(() => {}),
    }
  }
  return { asked, openAsk }
}

const answered = (output: string, isError = false): Decision => ({
  ...{ allow: true, how: 'reply', reason: '', by: 'ada', answer: { output, isError } },
})

const setUp = (setup: Setup) => resourcesOf({ tools: [OWN], policy: 'client', ...setup })

describe('calls that the client makes', () => {
  it('D45.1a: are shown with their executor and deadline once they can be answered, and their answers are the results', async () => {
    const { asked, openAsk } = asking({ a: answered('sent'), b: answered('no such order', true) })
    const { events, results } = await collect(CALLS, setUp({ openAsk }))
    expect(asked.map(({ kind, toolUseId, input }) => ({ kind, toolUseId, input }))).to.deep.equal([
      { kind: 'tool_call', toolUseId: 'a', input: { id: 1 } },
      { kind: 'tool_call', toolUseId: 'b', input: { id: 2 } },
    ])
    const use = { type: 'tool_use', tool_name: 'get_order', executor: 'client', expires_at: SOON }
    const result = { type: 'tool_result', tool_name: 'get_order', how: 'reply', by: 'ada' }
    expect(events).to.deep.equal([
      { ...use, id: 'a', input: { id: 1 } },
      { ...use, id: 'b', input: { id: 2 } },
      { ...result, id: 'a', output: 'sent', is_error: false },
      { ...result, id: 'b', output: 'no such order', is_error: true },
    ])
    expect(results.map(({ output, isError }) => [output, isError])).to.deep.equal([
      ['sent', false],
      ['no such order', true],
    ])
  })

  it('D45.1a: a call without an answer is an error that the model reads', async () => {
    const late: Decision = { allow: false, how: 'timeout', reason: 'nobody answered within 300 seconds' }
    const { events, results } = await collect([CALLS[0] ?? call('', '')], setUp(asking({ a: late })))
    expect(events.at(-1)).to.include({ type: 'tool_result', how: 'timeout', is_error: true })
    expect(results[0]?.output).to.include('nobody answered within 300 seconds')
  })

  it('a call whose input is wrong is not shown to the client, who has nothing to answer', async () => {
    const { asked, openAsk } = asking()
    const { events, results } = await collect(CALLS, setUp({ openAsk, problem: 'id must be a string.' }))
    expect(asked).to.deep.equal([])
    expect(events[0]).to.not.have.property('executor')
    expect(results[0]).to.include({ output: 'id must be a string.', isError: true })
  })

  it('a call that could not be opened is an error, not the end of the run, and no tool of the server runs', async () => {
    const openAsk = () => Promise.reject(new Error('a bug'))
    const bugs: unknown[] = []
    const setup = setUp({ openAsk, onToolBug: (_name, bug) => bugs.push(bug) })
    const { results } = await collect([CALLS[0] ?? call('', '')], setup)
    expect(results[0]).to.include({ isError: true }).and.property('output').includes('could not be asked')
    expect(bugs.map(String)).to.deep.equal(['Error: a bug'])
  })

  it('D14.2: are refused in plan mode, like every tool that may change something', async () => {
    const { asked, openAsk } = asking()
    const { results } = await collect(CALLS, setUp({ openAsk, planMode: { isOn: true } }))
    expect([asked.length, results[0]?.isError]).to.deep.equal([0, true])
    expect(results[0]?.output).to.include('may only look')
  })

  it('D37.1: the end of the run resolves those that are open before its last event, also those answered a moment before', async () => {
    const abort = new AbortController()
    const [first, second] = [Promise.withResolvers<Decision>(), Promise.withResolvers<Decision>()]
    const openAsk: Setup['openAsk'] = async ({ toolUseId }) => ({
      ...{ id: toolUseId, expiresAt: SOON, decision: (toolUseId === 'a' ? first : second).promise },
    })
    const step = stepOf(CALLS, setUp({ openAsk, signal: abort.signal }))
    await step.next()
    await step.next()
    abort.abort('cancelled')
    first.resolve(answered('sent'))
    second.resolve({ allow: false, how: 'cancelled', reason: '' })
    const events: AgentEvent[] = []
    for await (const event of step) events.push(event)
    expect(typesOf(events)).to.deep.equal(['tool_result', 'tool_result'])
    expect(events[0]).to.include({ id: 'a', output: 'sent', how: 'reply' })
    expect(events[1]).to.include({ id: 'b', is_error: true, how: 'cancelled' })
  })

  describe('D45.6: of a run that ends with its calls', () => {
    const ending = (setup: Setup) => {
      const resources = setUp(setup)
      return { ...resources, permissions: { ...resources.permissions, endsWithCalls: true } }
    }

    it('are handed over without a deadline, and nobody is asked', async () => {
      const { asked, openAsk } = asking()
      const step = stepOf(CALLS, ending({ openAsk }))
      const events = [(await step.next()).value, (await step.next()).value]
      expect(events[0]).to.deep.include({ id: 'a', executor: 'client' }).and.not.have.property('expires_at')
      expect((await step.next()).value).to.deep.equal({ results: [], ending: undefined, isHandedOver: true })
      expect(asked).to.deep.equal([])
    })

    it('wait for a turn of their own: beside a call of the server they are not made, and the model is told so', async () => {
      const read = tool('Read', async () => succeed('text'))
      const resources = ending({ tools: [OWN, read] })
      resources.tools.toolBox.policyOf = (name) => (name === 'Read' ? 'allow' : 'client')
      const { results } = await collect([call('a', 'get_order'), call('r', 'Read')], resources)
      expect(results[0]).to.include({ isError: true }).and.property('output').includes('called alone')
      expect(results[1]).to.include({ output: 'text' })
    })
  })

  it('get ids of their own where the model has used one before, in this answer or in the history, or one is no part of a path', () => {
    const { tools } = setUp({})
    const history = [
      { role: 'assistant' as const, blocks: [{ type: 'tool_use' as const, id: 'a', toolName: 'Read', input: {} }] },
    ]
    const calls = ['a', 'b', 'b', 'c/d', 'x'.repeat(200)].map((id) => call(id, 'get_order'))
    const ids = withOwnIds(calls, { tools, messages: history }).map(({ id }) => id)
    expect(new Set(ids).size).to.equal(5)
    expect(ids[1]).to.equal('b')
    for (const id of [ids[0], ids[2], ids[3], ids[4]]) expect(id).to.match(/^call_[0-9a-f]{32}$/)
    tools.toolBox.policyOf = () => 'allow'
    const ofServer = withOwnIds(calls, { tools, messages: history }).map(({ id }) => id)
    expect(ofServer, 'those of the server keep theirs').to.deep.equal(calls.map(({ id }) => id))
  })

  it('the policy is asked once for each call, whose input a rule may have to read', async () => {
    const resources = setUp({ openAsk: asking({ a: answered('1'), b: answered('2') }).openAsk })
    const asked: string[] = []
    resources.tools.toolBox.policyOf = (name) => (asked.push(name), 'client')
    await collect(withOwnIds(CALLS, { tools: resources.tools, messages: [] }), resources)
    expect(asked).to.have.length(2)
  })
})
