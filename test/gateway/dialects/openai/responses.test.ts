// Tests responses.ts: what a request sends to its session or its run, and what its client gets.
import { expect } from 'chai'
import { callIdOf, responseId } from '../../../../services/gateway/dialects/openai/response-id.ts'
import type { Broker } from '../../../../shared/cluster/commands/broker.ts'
import type { RunSummary } from '../../../../shared/cluster/commands/runs.ts'
import { clientCallId } from '../../../../shared/cluster/permissions/store.ts'
import { invalidRequest, notFound } from '../../../../shared/kernel/errors.ts'
import type { AgentEvent, JsonObject } from '../../../../shared/kernel/events.ts'
import { DONE, framesOf, LIVE_RUN, PERMISSION_ID, RUN_ID, refusalOf, useGateways } from '../../setup.ts'
import * as of from '../recorded.ts'

const PATH = '/openai/v1/responses'
const SCHEMA = { type: 'object' }
const TOOLS = [{ type: 'function', name: 'pick', parameters: SCHEMA }]
const ref = { runId: RUN_ID, part: 1, sessionId: 's' }
const PREVIOUS = { model: 'main', previous_response_id: responseId(ref) }
const approve = { type: 'mcp_approval_response', approval_request_id: PERMISSION_ID, approve: true }
const output = (id: string) => ({ type: 'function_call_output', call_id: callIdOf(ref, id), output: `of ${id}` })
const user = (content: unknown) => ({ role: 'user', content })
const own = (id: string): AgentEvent => ({
  ...{ type: 'tool_use', id, tool_name: 'pick', input: {}, executor: 'client', expires_at: '2026-11-21T09:35:00.000Z' },
})
const LISTED = { type: 'function_call', call_id: callIdOf(ref, 'c1'), name: 'pick', arguments: '{"of":2}' }

describe('POST /openai/v1/responses', () => {
  const start = useGateways({ perTest: false })
  const calls: unknown[] = []
  let run: RunSummary
  let events: AgentEvent[]
  let refuse: Error | undefined
  let [get, post] = [undefined, undefined] as unknown as [typeof gateway.get, typeof gateway.post]
  let gateway: Awaited<ReturnType<typeof start>>
  before(async () => {
    const methods: Partial<Broker> = {
      async sendMessage(_tenant, id, { background: _b, priority: _p, if_waiting: _i, client_tools, ...message }) {
        if (refuse) throw refuse
        calls.push(['send', id, { ...message, ...((client_tools?.length ?? 0) > 0 && { client_tools }) }])
        return { runId: RUN_ID, frames: framesOf(...events) }
      },
      createSession: async (_tenant, id, seed) => void calls.push(['create', id, seed]) as never,
      getRun: async () => run,
      followRun: async () => framesOf(...events),
      replyPermission: async (_tenant, scope, id, { allow, reason }) =>
        void calls.push(['reply', scope, id, allow, reason]),
      findPermission: async () => undefined,
      answerCall: async (_tenant, scope, id, { answer }) => void calls.push(['answer', scope, id, answer]),
      cancelRun: async (_tenant, id) => void calls.push(['cancel', id]),
    }
    gateway = await start({ methods })
    ;({ get, post } = gateway)
  })
  beforeEach(() => {
    calls.length = 0
    refuse = undefined
    run = { ...LIVE_RUN, session_id: 's', model: 'm-1' }
    events = [{ type: 'text', text: 'Hello.' }, DONE]
  })

  type Answer = JsonObject & { id: string; output: JsonObject[]; error?: { param?: string } }
  const ask = async (body: object) => (await (await post(PATH, body)).json()) as Answer

  const STARTS: [what: string, body: object, message: object][] = [
    ['a text', {}, {}],
    ['a model by its id', { model: 'm-2' }, { model: 'm-2' }],
    ['instructions', { instructions: 'brief' }, { system_prompt: 'brief' }],
    [
      'a message of the system',
      { input: [{ role: 'system', content: 'brief' }, user('hi')] },
      { system_prompt: 'brief' },
    ],
    [
      'both',
      { input: [{ role: 'system', content: 'long' }, user('hi')], instructions: 'brief' },
      { system_prompt: 'brief' },
    ],
    ['its own tools', { tools: TOOLS }, { client_tools: [{ name: 'pick', input_schema: SCHEMA }] }],
    [
      'the form of the answer',
      { text: { format: { type: 'json_schema', schema: SCHEMA } } },
      { response_schema: SCHEMA },
    ],
    ['the form of a text', { text: { format: { type: 'text' } } }, {}],
    [
      'an effort and a limit',
      { reasoning: { effort: 'low' }, max_output_tokens: 9 },
      { effort: 'low', max_output_tokens: 9 },
    ],
    ['the response before', PREVIOUS, { after: RUN_ID }],
    [
      'a message and the outputs of before',
      { ...PREVIOUS, input: [LISTED, output('c1'), user('hi')] },
      { after: RUN_ID },
    ],
  ]
  for (const [what, body, message] of STARTS)
    it(`D31.6b: sends a message with ${what}`, async () => {
      const given = { model: 'main', input: 'hi', conversation: 's', ...body }
      await ask(given)
      expect(calls.at(-1)).to.deep.equal(['send', 's', { prompt: 'hi', ...message }])
    })

  it('D31.6b: begins a session with the items before the message as its history', async () => {
    refuse = notFound('no session')
    const create = { role: 'assistant', content: 'two' }
    const input = [
      user('one'),
      LISTED,
      { ...output('c1'), output: [{ type: 'input_text', text: 'red' }] },
      create,
      { type: 'reasoning' },
      user('three'),
    ]
    await ask({ model: 'main', input, conversation: { id: 's' } })
    expect(calls[0]).to.deep.equal([
      ...['create', 's'],
      [
        { role: 'user', content: 'one' },
        { role: 'assistant', blocks: [{ type: 'tool_use', id: 'call_2', tool_name: 'pick', input: { of: 2 } }] },
        {
          role: 'tool',
          blocks: [{ type: 'tool_result', id: 'call_2', tool_name: 'pick', output: 'red', is_error: false }],
        },
        { role: 'assistant', content: 'two' },
      ],
    ])
  })

  it('D31.6b: answers with the response, and in it what the request has said of its form', async () => {
    const asked = { temperature: 0, metadata: { a: 'b' }, instructions: 'brief', tools: TOOLS }
    const answer = await ask({ model: 'main', input: 'hi', conversation: 's', top_p: 1, ...asked })
    expect(answer).to.deep.include({
      ...{ id: responseId(ref), object: 'response', status: 'completed', model: 'main', previous_response_id: null },
      ...asked,
    })
    expect(answer['created_at']).to.be.closeTo(Date.now() / 1000, 60)
    expect(answer.output).to.containSubset([{ type: 'message', content: [{ text: 'Hello.' }] }])
    expect((await ask({ ...PREVIOUS, input: 'hi' }))['previous_response_id']).to.equal(responseId(ref))
  })

  it('D41.5: a typed answer has a typed response, whose id says so when it is read again', async () => {
    events = [{ type: 'text', text: 'so' }, { ...(of.done as object), output: { n: 1 } } as AgentEvent]
    const format = { type: 'json_schema', schema: SCHEMA }
    const { id, output: items } = await ask({ model: 'main', input: 'hi', conversation: 's', text: { format } })
    expect(items).to.containSubset([{ content: [{ text: '{"n":1}' }] }])
    expect(id).to.equal(responseId({ ...ref, isTyped: true }))
    const again = (await (await get(`${PATH}/${id}`)).json()) as Answer
    expect(again.output).to.deep.equal(items)
  })

  it('D31.6b: in the background it answers with the response as it begins', async () => {
    const answer = await ask({ model: 'main', input: 'hi', conversation: 's', background: true })
    expect([answer['status'], answer.output]).to.deep.equal(['in_progress', []])
  })

  const reply = (allow: boolean, reason?: string) => ['reply', 's', PERMISSION_ID, allow, reason]
  const answered = ['answer', 's', clientCallId(RUN_ID, 'c1'), { output: 'of c1', isError: false }]
  const denial = { ...approve, approve: false, reason: 'no' }
  const CALLED = ['mcp_call', 'function_call']
  const GOES_ON: [what: string, body: object, called: unknown[], shown: string[], partials?: number[]][] = [
    ['an approval', { ...PREVIOUS, input: [approve] }, reply(true), CALLED],
    ['a refusal with its reason', { ...PREVIOUS, input: [denial] }, reply(false, 'no'), CALLED],
    ['one of two outputs', { ...PREVIOUS, input: [output('c1')] }, answered, [...CALLED, 'message'], [2]],
    [
      'one at the end of the whole list',
      { model: 'main', input: [user('hi'), LISTED, output('c1')] },
      answered,
      [...CALLED, 'message'],
      [2],
    ],
  ]
  for (const [what, body, called, shown, partials] of GOES_ON)
    it(`D31.4: goes on with the response that waits, with ${what}`, async () => {
      events = [of.turn(1), of.call('a'), of.asked(PERMISSION_ID, 'a'), of.resolved(PERMISSION_ID, 'a'), of.result('a')]
      events.push(own('c1'), { ...of.result('c1'), type: 'tool_result' } as AgentEvent, ...of.said('bye'), DONE)
      run = { ...run, ...(partials ? { tool_call_ids: ['c1', 'c2'] } : { permission_ids: [PERMISSION_ID] }) }
      const answer = await ask(body)
      expect(answer.id).to.equal(responseId({ ...ref, part: 2, ...(partials && { partials }) }))
      expect(calls).to.deep.equal([called])
      expect(answer.output.map(({ type }) => type)).to.deep.equal(shown)
    })

  it('D31.4: a response whose conversation is gone asks for its messages', async () => {
    const lost = invalidRequest('no such place', { param: '/after' })
    for (const cause of [notFound('no session'), lost]) {
      refuse = cause
      expect((await ask({ ...PREVIOUS, input: 'hi' })).error?.param).to.equal('/previous_response_id')
    }
    refuse = invalidRequest('another', { param: '/prompt' })
    expect((await ask({ ...PREVIOUS, input: 'hi' })).error?.param).to.equal('/prompt')
    refuse = lost
    expect((await ask({ model: 'main', input: 'hi' })).error?.param).to.equal('/after')
  })

  it('D31.6a: is refused by its place before anything is done', async () => {
    const refused: [object, string][] = [
      [{ tools: [{ type: 'web_search' }] }, '/tools'],
      [{ prompt: { id: 'x' } }, '/prompt'],
      [{ model: 'flow:total' }, '/model'],
      [{ input: [] }, '/input'],
      [{ input: [{ type: 'mcp_approval_response' }] }, '/previous_response_id'],
      [{ ...PREVIOUS, input: [{ ...approve, approve: null }] }, '/input/0/approve'],
      [{ ...PREVIOUS, input: [{ ...approve, approval_request_id: 'x' }] }, '/input/0/approval_request_id'],
      [{ input: [{ ...output('a'), call_id: 'call_2' }] }, '/input/0/call_id'],
      [{ conversation: 'a/b' }, '/conversation'],
      [{ conversation: { id: 'a/b' } }, '/conversation/id'],
    ]
    for (const [body, param] of refused) {
      const response = await post(PATH, { model: 'main', input: 'hi', ...body })
      expect([response.status, (await refusalOf(response)).param], JSON.stringify(body)).to.deep.equal([400, param])
    }
    expect(calls).to.deep.equal([])
  })

  it('D31.6c: a response is read again as far as it has come, and as a stream from behind the event that the client has', async () => {
    const path = `${PATH}/${responseId(ref)}`
    const read = async () => (await (await get(path)).json()) as Answer
    run = { ...run, event_count: 1 }
    expect(await read()).to.deep.include({ status: 'in_progress', model: 'm-1', created_at: 1_795_253_400 })
    run = { ...run, event_count: 2 }
    expect(await read()).to.include({ status: 'completed' })
    const numbersAfter = async (query: string) => {
      const text = await (await get(`${path}?stream=true${query}`)).text()
      return Array.from(text.matchAll(/"sequence_number":(\d+)/g), ([, number]) => Number(number))
    }
    const all = await numbersAfter('')
    expect(all.slice(0, 3)).to.deep.equal([0, 1, 2])
    expect(await numbersAfter('&starting_after=1')).to.deep.equal(all.slice(2))
  })

  it('D31.6c: a response that is cancelled is read to its end', async () => {
    run = { ...run, event_count: 0 }
    events = [of.turn(1), of.cancelled]
    const answer = (await (await post(`${PATH}/${responseId(ref)}/cancel`)).json()) as Answer
    expect([answer['status'], calls]).to.deep.equal(['cancelled', [['cancel', RUN_ID]]])
  })
})
