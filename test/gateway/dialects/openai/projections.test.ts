// Tests responses-projection.ts, response-output.ts, chat-projection.ts, chat.ts, responses.ts and ../shared/messages.ts.
import { expect } from 'chai'
import { ResponseStream } from 'openai/lib/responses/ResponseStream'
import { ChatProjection } from '../../../../services/gateway/dialects/openai/chat-projection.ts'
import { readResponseId, responseId } from '../../../../services/gateway/dialects/openai/response-id.ts'
import { ResponsesProjection } from '../../../../services/gateway/dialects/openai/responses-projection.ts'
import { Fields } from '../../../../services/gateway/dialects/shared/fields.ts'
import { readMessages } from '../../../../services/gateway/dialects/shared/messages.ts'
import type { AgentEvent } from '../../../../shared/kernel/events.ts'
import { DONE, framesOf, LIVE_RUN, PERMISSION_ID, refusalOf, useGateways } from '../../setup.ts'
import * as of from '../recorded.ts'

const responses = () =>
  new ResponsesProjection({ id: 'resp_1', runId: of.RUN, part: 1, created: 1, echo: { model: 'm' } })
const chat = () => new ChatProjection({ id: 'c', model: 'm', created: 1, includesUsage: true })

type Part = NonNullable<Parameters<typeof of.respond>[2]>
type Item = { type: string; status?: string }

/** The response that the package's own accumulator makes of one part of a run. */
async function accumulated(events: AgentEvent[], part?: Part) {
  const { chunks } = of.respond(responses(), events, part)
  expect(chunks.map((chunk) => chunk.sequence_number)).to.deep.equal(chunks.map((_, i) => i))
  const lines = chunks.map((chunk) => `${JSON.stringify(chunk)}\n`)
  const { output } = await ResponseStream.fromReadableStream(ReadableStream.from(lines)).finalResponse()
  return (output as Item[]).map(({ type, status }) => (status === undefined ? type : `${type} ${status}`))
}

describe("a run as OpenAI's responses, read by the package's own accumulator", () => {
  it('each response ends at a pause and holds what came since the one before', async () => {
    expect(await accumulated(of.WITH_SUB_AGENT)).to.deep.equal([
      ...['reasoning completed', 'message completed', 'mcp_approval_request', 'mcp_approval_request'],
    ])
    expect(await accumulated(of.WITH_SUB_AGENT, { pauses: 1 })).to.deep.equal(['mcp_call completed'])
    expect(await accumulated(of.WITH_SUB_AGENT, { pauses: 2 })).to.deep.equal([
      ...['mcp_call completed', 'message completed'],
    ])
  })

  it("a call names the request that it waited for, and not that of a sub-agent's call with the same id", () => {
    const { chunks } = of.respond(responses(), of.WITH_SUB_AGENT, { pauses: 1 })
    const ended = chunks.findLast(({ type }) => type === 'response.output_item.done')
    expect(ended?.['item']).to.include({ type: 'mcp_call', approval_request_id: 'perm_1' })
  })

  it('D40.4: the answer to a question of a tool is not the input of its call, which names the permission that it waited for', () => {
    const { chunks } = of.respond(responses(), of.WITH_QUESTIONS, { passed: 99 })
    const ended = chunks.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item as object)
    expect(ended.filter((item) => 'type' in item && item.type === 'mcp_call')).to.containSubset([
      { arguments: '{"path":"b"}', approval_request_id: 'p', output: 'pushed' },
      { arguments: '{"path":"a"}', approval_request_id: null, output: 'left out' },
    ])
  })

  it('D32.7a: the text of a turn that begins anew is an item of its own, and stands apart in a chat', async () => {
    expect(await accumulated(of.RECOVERED)).to.deep.equal(['message completed', 'message completed'])
    const { chunks } = of.respond(chat(), of.RECOVERED)
    const text = chunks.map(({ choices }) => choices?.[0]?.delta['content'] ?? '').join('')
    expect(text).to.equal('I beg\n\nI write.')
  })

  it('D32.7a: the rest of a complete turn that comes without its deltas goes on in the same text, and its calls are not void', async () => {
    expect(await accumulated(of.REST)).to.deep.equal(['message completed', 'mcp_call completed', 'message completed'])
    const { chunks } = of.respond(responses(), of.REST)
    const texts = chunks.flatMap((chunk) => (chunk.type === 'response.output_text.delta' ? [chunk['delta']] : []))
    expect(texts).to.deep.equal(['I re', 'ad.', 'I write.'])
    const said = of.respond(chat(), of.REST).chunks.map(({ choices }) => choices?.[0]?.delta['content'] ?? '')
    expect(said.join('')).to.equal('I read.\n\nI write.')
  })

  it('D31.4: a response passes the rest between two answers of which another client has given one, unless its own client has left one open', () => {
    const events = [
      ...[of.turn(1), of.call('1'), of.call('2'), of.asked('p1', '1'), of.asked('p2', '2')],
      ...[of.resolved('p1', '1'), of.result('1'), of.resolved('p2', '2'), of.result('2'), of.turnEnd(1)],
      ...[of.turn(2), of.call('3'), of.asked('p3', '3'), of.resolved('p3', '3'), of.result('3'), of.turnEnd(2)],
      ...[of.turn(3), ...of.said('bye'), of.turnEnd(3), of.done],
    ]
    const itemsOf = (part: Part) => {
      const projection = responses()
      of.respond(projection, events, { partials: [], ...part })
      return (projection.response['output'] as { type: string }[]).map(({ type }) => type).join()
    }
    expect(itemsOf({})).to.equal('mcp_approval_request,mcp_approval_request')
    expect(itemsOf({ pauses: 1 })).to.equal('mcp_call,mcp_call,mcp_approval_request')
    expect(itemsOf({ pauses: 2 })).to.equal('mcp_call,message')
    expect(itemsOf({ pauses: 1, partials: [2] })).to.equal('mcp_call')
    expect(itemsOf({ pauses: 2, partials: [2] })).to.equal('mcp_call,mcp_approval_request')
    expect(itemsOf({ pauses: 3, partials: [2] })).to.equal('mcp_call,message')
  })

  it('a failure, a cancel and a cut are told as such', () => {
    const last = (event: AgentEvent) => of.respond(responses(), [of.turn(1), event]).chunks.at(-1)
    expect(last(of.failed)).to.have.nested.property('response.error.code', 'server_error')
    const late = last({ ...of.failed, code: 'no_room' })
    expect(late).to.have.nested.property('response.error.code', 'rate_limit_exceeded')
    expect(last(of.cancelled)).to.have.nested.property('response.status', 'cancelled')
    expect(last(of.queued)).to.have.nested.property('response.output[0].content[0].text').that.includes('plan_0')
    expect(responses().cut('slow_consumer')[0]).to.include({ type: 'error', code: 'slow_consumer' })
  })

  it('the id of a response says all that is needed to make it again, and no other text is one', () => {
    const ref = { runId: of.RUN, part: 17, sessionId: 'support-7' }
    expect(readResponseId(responseId(ref))).to.deep.equal(ref)
    const left = { ...ref, partials: [2, 17], isTyped: true as const }
    expect(readResponseId(responseId(left))).to.deep.equal(left)
    for (const id of ['', 'resp_x', `${responseId(ref)}/..`]) expect(() => readResponseId(id)).to.throw(/no response/)
  })
})

describe('a run as a chat completion', () => {
  const textOf = (events: AgentEvent[]) =>
    of
      .respond(chat(), events)
      .chunks.map(
        (chunk) => (chunk as { choices?: { delta: { content?: string } }[] }).choices?.[0]?.delta.content ?? '',
      )
      .join('')

  it('shows the texts, and nothing of the calls; it does not end at a request for permission', () => {
    expect(textOf(of.WITH_SUB_AGENT)).to.equal('I write.\n\nBye.')
    const recorded = of.WITH_SUB_AGENT.filter(({ type }) => !type.endsWith('_delta'))
    expect(textOf(recorded)).to.equal('I write.\n\nBye.')
    const { chunks } = of.respond(chat(), of.WITH_SUB_AGENT)
    expect(chunks.at(-1)).to.deep.include({ usage: { prompt_tokens: 6, completion_tokens: 4, total_tokens: 10 } })
    expect(of.respond(chat(), [of.failed]).chunks.at(-1)).to.have.nested.property('error.code', 'provider_rejected')
  })
})

describe("OpenAI's messages", () => {
  const read = (...messages: object[]) =>
    readMessages(
      messages.map((each) => new Fields({ ...each })),
      '/messages',
    )

  it('become a prompt, a system prompt and a history with the calls of tools', () => {
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }
    const { prompt, system, seed } = read(
      { role: 'developer', content: 'brief' },
      { role: 'user', content: [{ type: 'text', text: 'one' }] },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'a', content: 'two' },
      { role: 'user', content: 'three' },
    )
    expect([prompt, system]).to.deep.equal(['three', 'brief'])
    expect(seed().map(({ role }) => role)).to.deep.equal(['user', 'assistant', 'tool', 'assistant'])
  })

  it('are refused without a text of the user at their end, and with a part that is none', () => {
    expect(() => read({ role: 'user', content: 'a' }, { role: 'assistant', content: 'b' })).to.throw(/must end with/)
    expect(() => read({ role: 'user', content: [{ type: 'hologram' }] })).to.throw(/type must be text/)
  })
})

/** The fields of a request that goes on with a response. */
const AFTER = { model: 'main', previous_response_id: responseId({ runId: of.RUN, part: 1, sessionId: 's-1' }) }

describe('what this server cannot do for a client of OpenAI', () => {
  const start = useGateways()

  it('D31.6a: is refused by its place before anything is done', async () => {
    const { post } = await start()
    const messages = [{ role: 'user', content: 'hi' }]
    const refused: [string, object, string][] = [
      ['chat/completions', { messages }, '/model'],
      ['chat/completions', { model: 'main', messages, tools: [{ type: 'function' }] }, '/tools/0/name'],
      ['chat/completions', { model: 'main', messages, n: 2 }, '/n'],
      ['chat/completions', { model: 'main', messages, stop: [''] }, '/stop'],
      ['chat/completions', { model: 'main', messages, stop: Array(17).fill('a') }, '/stop'],
      ['responses', { model: 'main', input: 'hi', tools: [{ type: 'web_search' }] }, '/tools'],
      ['responses', { model: 'main', input: [] }, '/input'],
      ['responses', { model: 'main', input: [{ type: 'mcp_approval_response' }] }, '/previous_response_id'],
      [
        'responses',
        { ...AFTER, input: [{ type: 'mcp_approval_response', approval_request_id: PERMISSION_ID }] },
        '/input/0/approve',
      ],
      [
        'responses',
        { ...AFTER, input: [{ type: 'mcp_approval_response', approval_request_id: 'x', approve: true }] },
        '/input/0/approval_request_id',
      ],
      ['responses', { model: 'main', input: 'hi', conversation: 'a/b' }, '/conversation'],
    ]
    for (const [path, body, param] of refused) {
      const response = await post(`/openai/v1/${path}`, body)
      expect([response.status, (await refusalOf(response)).param], JSON.stringify(body)).to.deep.equal([400, param])
    }
  })
})

describe('a request of a client of OpenAI', () => {
  const start = useGateways()

  it('D31.6b: starts one run with the messages before the last one as its history', async () => {
    const asked: unknown[] = []
    const { post } = await start({
      methods: {
        async startRun(_tenant, request) {
          asked.push(request)
          return { runId: of.RUN, frames: framesOf({ type: 'text', text: 'Hello.' }, DONE) }
        },
      },
    })
    const messages = [
      { role: 'system', content: 'brief' },
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'two' },
      { role: 'user', content: 'three' },
    ]
    const response = await post('/openai/v1/chat/completions', { model: 'main', messages, stop: 'END' })
    expect(await response.json()).to.have.nested.property('choices[0].message.content', 'Hello.')
    expect(asked).to.deep.equal([
      {
        ...{ prompt: 'three', system_prompt: 'brief', stop_sequences: ['END'] },
        messages: [
          { role: 'user', content: 'one' },
          { role: 'assistant', content: 'two' },
        ],
      },
    ])
  })

  it('D31.6c: a response is read again from behind the event that the client has', async () => {
    const { get } = await start({
      methods: {
        getRun: async () => LIVE_RUN,
        followRun: async () => framesOf({ type: 'text', text: 'Hello.' }, DONE),
      },
    })
    const numbersAfter = async (query: string) => {
      const id = responseId({ runId: of.RUN, part: 1, sessionId: 's-1' })
      const text = await (await get(`/openai/v1/responses/${id}?stream=true${query}`)).text()
      return Array.from(text.matchAll(/"sequence_number":(\d+)/g), ([, number]) => Number(number))
    }
    const all = await numbersAfter('')
    expect(all.slice(0, 3)).to.deep.equal([0, 1, 2])
    expect(await numbersAfter('&starting_after=1')).to.deep.equal(all.slice(2))
  })
})
