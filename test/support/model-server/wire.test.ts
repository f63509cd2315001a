import { expect } from 'chai'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { bodyOf } from './drive.ts'
import { type Answer, useModelServer } from './model-server.ts'

const MESSAGES = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
const ALL: Answer = [{ thinking: 'hm' }, { text: 'one two' }, { tool: 'Read', input: { a: 1 }, chunks: 2 }]

describe('the bytes of the model server', () => {
  const server = useModelServer({ perTest: true })

  const post = (path: string, body: unknown, headers = {}) =>
    fetch(`${server.url}${path}`, { method: 'POST', body: JSON.stringify(body), headers })

  async function stream(path: string, body: object): Promise<EventSourceMessage[]> {
    const events: EventSourceMessage[] = []
    const parser = createParser({ onEvent: (event) => events.push(event) })
    const res = await post(path, { ...body, stream: true })
    expect(res.headers.get('content-type')).to.match(/^text\/event-stream/)
    parser.feed(await res.text())
    return events
  }

  it("chat completions have OpenAI's exact format", async () => {
    server.answer({ steps: ALL, usage: { input: 9, output: 4, cacheRead: 3 } })
    const events = await stream('/chat/completions', { ...MESSAGES, stream_options: { include_usage: true } })
    expect(events.pop()?.data).to.equal('[DONE]')
    const chunks = events.map(({ data }) => JSON.parse(data))
    const usage = chunks.pop()
    expect(usage.choices).to.deep.equal([])
    expect(usage.usage).to.deep.include({ prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 })
    expect(usage.usage.prompt_tokens_details.cached_tokens).to.equal(3)
    for (const chunk of chunks) {
      expect(chunk).to.include({ object: 'chat.completion.chunk', id: usage.id, model: 'm', usage: null })
    }
    expect(chunks.pop().choices).to.deep.equal([{ index: 0, delta: {}, logprobs: null, finish_reason: 'tool_calls' }])
    const [first, thought, one, two, start, ...pieces] = chunks.map(({ choices: [{ delta }] }) => delta)
    expect(first).to.deep.equal({ role: 'assistant', content: null, reasoning_content: '' })
    expect(thought).to.deep.equal({ content: null, reasoning_content: 'hm' })
    expect([one, two]).to.deep.equal([{ content: 'one' }, { content: ' two' }])
    const { id, ...call } = start.tool_calls[0]
    expect(id).to.match(/^call_/)
    expect(call).to.deep.equal({ index: 0, type: 'function', function: { name: 'Read', arguments: '' } })
    expect(pieces.map((delta) => delta.tool_calls)).to.deep.equal([
      [{ index: 0, function: { arguments: '{"a"' } }],
      [{ index: 0, function: { arguments: ':1}' } }],
    ])
  })

  it('chat completions report usage only when the request asks for it', async () => {
    const events = await stream('/chat/completions', MESSAGES)
    expect(events.filter(({ data }) => data.includes('usage'))).to.deep.equal([])
  })

  it("messages have Anthropic's format: every event is named, and every block opens and closes before the next", async () => {
    server.answer({ steps: ALL, usage: { input: 9, output: 4, cacheRead: 3, cacheWrite: 2 } })
    const events = await stream('/messages', MESSAGES)
    const parsed = events.map(({ data }) => JSON.parse(data))
    expect(parsed.map(({ type }) => type)).to.deep.equal(events.map(({ event }) => event))
    const outline = parsed.map(({ type, index, delta }) =>
      [type, index, delta?.type].filter((each) => each !== undefined),
    )
    expect(outline.map((each) => each.join(' '))).to.deep.equal([
      'message_start',
      'content_block_start 0',
      'ping',
      'content_block_delta 0 thinking_delta',
      'content_block_delta 0 signature_delta',
      'content_block_stop 0',
      'content_block_start 1',
      'content_block_delta 1 text_delta',
      'content_block_delta 1 text_delta',
      'content_block_stop 1',
      'content_block_start 2',
      'content_block_delta 2 input_json_delta',
      'content_block_delta 2 input_json_delta',
      'content_block_delta 2 input_json_delta',
      'content_block_stop 2',
      'message_delta',
      'message_stop',
    ])
    const cache = { cache_read_input_tokens: 3, cache_creation_input_tokens: 2 }
    expect(parsed[0].message.usage).to.include({ input_tokens: 4, ...cache })
    expect(parsed.at(-2).delta).to.deep.equal({ stop_reason: 'tool_use', stop_sequence: null })
    expect(parsed.at(-2).usage).to.deep.equal({ input_tokens: 4, output_tokens: 4, ...cache })
  })

  it("responses have OpenAI's format: every event is named and numbered, and the last contains the whole output", async () => {
    server.answer(ALL)
    const events = await stream('/responses', { model: 'm', input: 'hi' })
    const parsed = events.map(({ data }) => JSON.parse(data))
    expect(parsed.map(({ type }) => type)).to.deep.equal(events.map(({ event }) => event))
    expect(parsed.map((each) => each.sequence_number)).to.deep.equal(parsed.map((_, i) => i))
    const done = parsed.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item)
    expect(parsed.at(-1)).to.deep.include({ type: 'response.completed' })
    expect(parsed.at(-1).response.output).to.deep.equal(done)
    expect(done.map(({ type }) => type)).to.deep.equal(['reasoning', 'message', 'function_call'])
  })

  it("generateContent has Google's format: calls as a whole, events that end with CR LF, the finish reason in the last event", async () => {
    server.answer(ALL)
    const url = `${server.googleUrl}/models/gem:streamGenerateContent?alt=sse`
    const body = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'hi' }] }] })
    const raw = await (await fetch(url, { method: 'POST', body })).text()
    const frames = raw.split('\r\n\r\n')
    expect(frames.pop()).to.equal('')
    const candidates = frames.map((frame) => JSON.parse(frame.replace(/^data: /, '')).candidates[0])
    expect(candidates.map(({ finishReason }) => finishReason).filter(Boolean)).to.deep.equal(['STOP'])
    const parts = candidates.flatMap(({ content }) => content.parts)
    expect(parts[0]).to.deep.equal({ text: 'hm', thought: true })
    expect(parts[3].functionCall).to.deep.equal({ name: 'Read', args: { a: 1 } })
    expect(server.requests[0]).to.include({ model: 'gem', prompt: 'hi' })
  })

  it('an HTTP error has the body of its format', async () => {
    server.answer(
      { status: 529 },
      { status: 400, code: 'content_policy_violation', message: 'no' },
      { status: 402, body: 'x' },
    )
    const anthropic = await bodyOf(post('/messages', MESSAGES))
    expect(anthropic.error).to.deep.equal({ type: 'overloaded_error', message: 'Overloaded' })
    const openai = await bodyOf(post('/chat/completions', MESSAGES))
    expect(openai.error).to.include({ code: 'content_policy_violation', message: 'no', param: null })
    expect(await (await post('/responses', { input: 'hi' })).text()).to.equal('x')
  })
})
