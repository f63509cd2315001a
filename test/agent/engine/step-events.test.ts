import { expect } from 'chai'
import type { Decision } from '../../../shared/agent/engine/permissions.ts'
import { succeed } from '../../../shared/agent/tools/port.ts'
import type { AgentEvent } from '../../../shared/kernel/events.ts'
import { call, resourcesOf, SOON, stepOf, tool } from './tool-step-setup.ts'

const CANCELLED: Decision = { allow: false, how: 'cancelled', reason: '' }

/** A step whose requests are decided when the test says so. Its events are read as they come. */
function begin(names: readonly string[]) {
  const abort = new AbortController()
  const decisions = new Map(names.map((name) => [name, Promise.withResolvers<Decision>()]))
  const busy = tool('Busy', () => Promise.withResolvers<never>().promise)
  const late = tool('Late', (_input, { signal }) => {
    const { promise, resolve } = Promise.withResolvers<ReturnType<typeof succeed>>()
    signal.addEventListener('abort', () => resolve(succeed('stopped')))
    return promise
  })
  const resources = resourcesOf({
    tools: [...names.map((name) => tool(name)), busy, late],
    signal: abort.signal,
    openAsk: async ({ toolName }) => ({
      id: `perm_${toolName}`,
      expiresAt: SOON,
      decision: decisions.get(toolName)?.promise ?? Promise.resolve(CANCELLED),
    }),
  })
  resources.tools.toolBox.policyOf = (name) => (names.includes(name) ? 'ask' : 'allow')
  const calls = [...names, 'Busy', 'Late'].map((name) => call(`c_${name}`, name))
  return { step: stepOf(calls, resources), abort, decisions }
}

async function untilAsked(step: AsyncIterator<AgentEvent>, asks: number): Promise<void> {
  for (let count = 0; count < asks; ) {
    const { value } = (await step.next()) as { value: AgentEvent }
    if (value.type === 'permission_request') count++
  }
}

async function rest(step: AsyncIterator<AgentEvent>): Promise<string[]> {
  const events: string[] = []
  for (let next = await step.next(); !next.done; next = await step.next()) {
    const { value } = next
    events.push('how' in value ? `${value.type} ${String(value['id'])} ${String(value.how)}` : value.type)
  }
  return events
}

describe('the events of tool calls when their run is aborted', () => {
  it('D37.1: each request that is open is resolved, as it was decided, and nothing else follows', async () => {
    const { step, abort, decisions } = begin(['Write', 'Edit'])
    await untilAsked(step, 2)
    abort.abort('cancelled')
    decisions.get('Edit')?.resolve({ allow: true, how: 'reply', reason: '' }) // The reply had come just before.
    const ended = rest(step)
    decisions.get('Write')?.resolve(CANCELLED)
    expect(await ended).to.deep.equal([
      'permission_resolved perm_Edit reply',
      'permission_resolved perm_Write cancelled',
    ])
  })

  it('D37.1: the events do not end before each request that is open is decided', async () => {
    const { step, abort, decisions } = begin(['Write'])
    await untilAsked(step, 1)
    abort.abort('cancelled')
    const ended = rest(step).then((events) => [...events, 'end'])
    const first = await Promise.race([ended, new Promise((resolve) => setImmediate(resolve, 'still open'))])
    decisions.get('Write')?.resolve(CANCELLED)
    expect([first, await ended]).to.deep.equal(['still open', ['permission_resolved perm_Write cancelled', 'end']])
  })

  it('without an open request they end at once', async () => {
    const { step, abort } = begin([])
    await step.next()
    await step.next()
    setImmediate(() => abort.abort('cancelled'))
    expect(await rest(step)).to.deep.equal([])
  })

  it('D4.13, D37.1: the decision of a sub-agent’s request comes wrapped and plain', async () => {
    const abort = new AbortController()
    const request = { id: 'perm_1', tool_name: 'Write', tool_use_id: 'c9' }
    const ask: AgentEvent = { type: 'permission_request', ...request, input: {}, message: '?', expires_at: SOON }
    const resolved: AgentEvent = { type: 'permission_resolved', ...request, ...CANCELLED }
    const wrap = ({ type, ...fields }: AgentEvent): AgentEvent => ({
      type: 'subagent_event',
      subagent_id: 'sub_1',
      event_type: type,
      ...fields,
    })
    const resources = resourcesOf({
      tools: [tool('Agent', (_input, { agents }) => agents.run({ description: 'a task', prompt: '' }) as never)],
      signal: abort.signal,
    })
    resources.subAgentsFor = (emit) => ({
      depth: 0,
      refusal: () => undefined,
      async run() {
        for (const event of [wrap(ask), ask]) void emit(event)
        abort.abort('cancelled')
        for (const event of [wrap({ type: 'text', text: 'late' }), wrap(resolved), resolved]) void emit(event)
        return Promise.withResolvers<never>().promise
      },
    })
    const step = stepOf([call('c1', 'Agent')], resources)
    const events: string[] = []
    for await (const event of step) events.push('event_type' in event ? `wrapped ${event.event_type}` : event.type)
    expect(events.slice(1)).to.deep.equal([
      ...['wrapped permission_request', 'permission_request'],
      ...['wrapped permission_resolved', 'permission_resolved'],
    ])
  })
})
