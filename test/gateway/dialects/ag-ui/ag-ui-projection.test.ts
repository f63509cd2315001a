// Tests ag-ui-projection.ts, messages.ts, sub-agents.ts and ag-ui-routes.ts.
import { HttpAgent } from '@ag-ui/client'
import { EventSchemas } from '@ag-ui/core/schemas'
import { expect } from 'chai'
import { AgUiProjection } from '../../../../services/gateway/dialects/ag-ui/ag-ui-projection.ts'
import { AG_UI_WIRE, type AgUiEvent } from '../../../../services/gateway/dialects/ag-ui/events.ts'
import { notFound } from '../../../../shared/kernel/errors.ts'
import type { AgentEvent } from '../../../../shared/kernel/events.ts'
import { refusalOf, useGateways } from '../../setup.ts'
import * as of from '../recorded.ts'

const projection = (isCurrent = true) =>
  new AgUiProjection({ threadId: 't', runId: 'r', engineRunId: of.RUN, isCurrent })

type Part = Parameters<typeof of.respond>[2]

/** The events of one response, each of which the protocol's own schemas accept, and all of which its client takes in their order. */
async function eventsOf(events: AgentEvent[], part?: Part, isCurrent = true) {
  const { chunks } = of.respond(projection(isCurrent), events, part)
  for (const chunk of chunks) EventSchemas.parse(chunk)
  const headers = { 'content-type': 'text/event-stream' }
  const fetch = async () => new Response(AG_UI_WIRE.render(chunks), { headers })
  await new HttpAgent({ url: 'http://127.0.0.1', threadId: 't', fetch }).runAgent({ runId: 'r' })
  return chunks
}

/** The types of the events of sub-agents, with the sub-agents that they name. */
const named = (events: AgUiEvent[]) =>
  events.flatMap(({ type, subagentRunId }) => (subagentRunId === undefined ? [] : [`${type} ${subagentRunId}`]))

describe('a run as events of AG-UI, checked by its own schemas and its own order of events', () => {
  it('D32.7a: a turn that begins anew has a message and a step of its own, behind the warning', async () => {
    const types = (await eventsOf(of.RECOVERED)).map(({ type }) => type)
    const at = types.indexOf('CUSTOM')
    expect(types.slice(at - 2, at + 3)).to.deep.equal([
      ...['TEXT_MESSAGE_END', 'STEP_FINISHED', 'CUSTOM', 'STEP_STARTED', 'TEXT_MESSAGE_START'],
    ])
  })

  it('D32.7a: the rest of a complete turn that comes without its deltas goes on in the same message, and its calls are not void', async () => {
    const events = await eventsOf(of.REST)
    const texts = events.flatMap(({ type, delta }) => (type === 'TEXT_MESSAGE_CONTENT' ? [delta] : []))
    expect(texts).to.deep.equal(['I re', 'ad.', 'I write.'])
    expect(events.filter(({ type }) => type === 'TEXT_MESSAGE_START')).to.have.length(2)
    const results = (await eventsOf(of.REST_OF_CALL)).filter(({ type }) => type === 'TOOL_CALL_RESULT')
    expect(results.map(({ content }) => content)).to.deep.equal(['written'])
  })

  it('D32.7a: each call of a void turn has one result, and the run is interrupted by the request of the new one', async () => {
    const resultsOf = async (events: AgentEvent[]) =>
      (await eventsOf(events)).flatMap(({ type, toolCallId, outcome }) => {
        if (type === 'RUN_FINISHED')
          return [(outcome as { interrupts: { toolCallId: string }[] }).interrupts[0]?.toolCallId]
        return type === 'TOOL_CALL_RESULT' ? [toolCallId] : []
      })
    expect(await resultsOf(of.CUT_ANEW)).to.deep.equal(['sub_1/c1', 'c1', 'c2', 'd1'])
    expect(await resultsOf(of.CUT_AGAIN)).to.deep.equal(['sub_1/c1', 'c2', 'c1'])
  })

  it('is interrupted with all that waits, each by the id of the run and the request', async () => {
    const idsOf = async (isCurrent: boolean) => {
      const last = (await eventsOf(of.WITH_SUB_AGENT, undefined, isCurrent)).at(-1)
      const { outcome } = last as { outcome?: { interrupts: Record<string, unknown>[] } }
      return outcome?.interrupts.map(({ id, toolCallId, subagentRunId }) => [id, toolCallId, subagentRunId])
    }
    const [first, second] = [`${of.RUN}/perm_1`, `${of.RUN}/perm_2`]
    expect(await idsOf(true)).to.deep.equal([
      [first, 'c1', undefined],
      [second, 'sub_1/c1', 'sub_1'],
    ])
    expect(await idsOf(false), 'a client of an earlier version knows no sub-agents').to.deep.equal([
      [first, 'c1', undefined],
      [second, 'sub_1/c1', undefined],
    ])
  })

  it('D38.1a: the message of a call has an id of its run, by which the list of a client that writes instead of answering names its place', async () => {
    const events = await eventsOf([of.turn(1), of.call('a'), of.call('b'), of.asked('p', 'a'), of.asked('q', 'b')])
    const messages = events.flatMap(({ type, parentMessageId }) =>
      type === 'TOOL_CALL_START' ? [parentMessageId] : [],
    )
    expect(messages).to.deep.equal([`${of.RUN}-2`, `${of.RUN}-3`])
  })

  it('D40.4: is interrupted a second time with the same call by a question of its tool', async () => {
    const asking = [of.turn(1), of.call('a'), of.asked('p', 'a'), of.resolved('p', 'a'), of.questioned('q', 'a')]
    const last = (await eventsOf(asking, { known: new Set(['p']) })).at(-1)
    const { outcome } = last as { outcome?: { interrupts: object[] } }
    expect(outcome?.interrupts).to.have.length(1)
    expect(outcome?.interrupts).to.containSubset([
      { id: `${of.RUN}/q`, toolCallId: 'a', metadata: { preview: { kind: 'form' } } },
    ])
  })

  it('names the sub-agent of a message, a step and a call, and suspends it where it waits', async () => {
    const events = await eventsOf(of.WITH_SUB_AGENT)
    expect(named(events)).to.deep.equal(
      [
        ...['SUBAGENT_STARTED', 'STEP_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_CONTENT'],
        ...['TEXT_MESSAGE_END', 'TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', 'STEP_FINISHED'],
        'SUBAGENT_FINISHED',
      ].map((type) => `${type} sub_1`),
    )
    const suspended = events.find(({ type }) => type === 'SUBAGENT_FINISHED')
    expect(suspended?.['outcome']).to.deep.equal({ type: 'suspended', interruptIds: [`${of.RUN}/perm_2`] })
  })

  it('shows a sub-agent of a sub-agent behind the one that it works for, also in a later response', async () => {
    const events = [
      ...[of.turn(1), of.call('c1'), of.begun('a'), ...of.within('a', of.call('c1')), of.begun('b', 'a')],
      ...of.within('b', of.call('c1'), of.asked('perm_1', 'c1'), of.resolved('perm_1', 'c1'), of.result('c1')),
      ...[of.ended('b'), ...of.within('a', of.result('c1')), of.ended('a'), of.result('c1'), of.done],
    ]
    for (const part of [undefined, { known: new Set(['perm_1']), passed: 99 }]) {
      const started = (await eventsOf(events, part)).filter(({ type }) => type === 'SUBAGENT_STARTED')
      expect(started.map((event) => [event['subagentRunId'], event['parentSubagentRunId']])).to.deep.equal([
        ['a', undefined],
        ['b', 'a'],
      ])
    }
  })

  it('ends as cancelled with all that is open; a client of an earlier version, which knows no such end, gets an error', async () => {
    const events = [of.turn(1), of.begun('sub_1'), ...of.within('sub_1', of.turn(1), ...of.said('half').slice(0, 1))]
    const cancelled = await eventsOf([...events, of.cancelled])
    expect(cancelled.at(-1)).to.deep.include({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } })
    expect(named(cancelled).at(-1)).to.equal('SUBAGENT_ERROR sub_1')
    const earlier = await eventsOf([...events, of.cancelled], undefined, false)
    expect(earlier.at(-1)).to.include({ type: 'RUN_ERROR', code: 'cancelled' })
  })
})

describe('POST /ag-ui', () => {
  const start = useGateways()

  const missing = () => Promise.reject(notFound('no session'))

  it('D31.7a: what this server cannot take is refused by its place', async () => {
    const { post } = await start({ methods: { getSession: missing, listMessages: missing } })
    const messages = [{ role: 'user', content: 'hi' }]
    const [said, result] = [
      { role: 'assistant', content: '' },
      { role: 'tool', toolCallId: 'c', content: 'of a thread that is not there' },
    ]
    const refused: [object, string][] = [
      [{ runId: 'r', messages }, '/threadId'],
      [{ threadId: 'a/b', runId: 'r', messages }, '/threadId'],
      [{ threadId: 't', runId: 'r', messages, tools: [{ name: 'no blanks' }] }, '/tools/0/name'],
      [{ threadId: 't', runId: 'r', messages: [] }, '/messages'],
      [{ threadId: 't', runId: 'r', messages: [...messages, said, result] }, '/messages'],
      [{ threadId: 't', runId: 'r', resume: [{ interruptId: 'x' }] }, '/resume/0/interruptId'],
    ]
    for (const [body, param] of refused) {
      const response = await post('/ag-ui', body)
      expect([response.status, (await refusalOf(response)).param]).to.deep.equal([400, param])
    }
  })
})
