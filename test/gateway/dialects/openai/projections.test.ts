// Tests responses-projection.ts, response-output.ts, chat-projection.ts, response-id.ts and ../shared/messages.ts.
import { expect } from 'chai'
import { ResponseStream } from 'openai/lib/responses/ResponseStream'
import { ChatProjection } from '../../../../services/gateway/dialects/openai/chat-projection.ts'
import { readResponseId, responseId } from '../../../../services/gateway/dialects/openai/response-id.ts'
import { ResponsesProjection } from '../../../../services/gateway/dialects/openai/responses-projection.ts'
import { Fields } from '../../../../services/gateway/dialects/shared/fields.ts'
import { readMessages } from '../../../../services/gateway/dialects/shared/messages.ts'
import type { AgentEvent } from '../../../../shared/kernel/events.ts'
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

  it('D54.4: a start that found no room in time is a rate limit', () => {
    const late = of.respond(responses(), [of.turn(1), { ...of.failed, code: 'no_room' }]).chunks.at(-1)
    expect(late).to.have.nested.property('response.error.code', 'rate_limit_exceeded')
  })

  it('the id of a response says all that is needed to make it again, and no other text is one', () => {
    const ref = { runId: of.RUN, part: 17, sessionId: 'support-7' }
    expect(readResponseId(responseId(ref))).to.deep.equal(ref)
    const left = { ...ref, partials: [2, 17], isTyped: true as const }
    expect(readResponseId(responseId(left))).to.deep.equal(left)
    for (const id of ['', 'resp_x', `${responseId(ref)}/..`]) expect(() => readResponseId(id)).to.throw(/no response/)
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
