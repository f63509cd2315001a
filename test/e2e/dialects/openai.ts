import { expect } from 'chai'
import OpenAI from 'openai'
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod'
import type { Response as ModelResponse, ResponseOutputItem } from 'openai/resources/responses/responses'
import { z } from 'zod'
import { agent, BUSY_TRIES, type RunningProduct, replyNatively, tool, write } from './dialect-product.ts'

const CUT = { input: '/say before\n/sleep 300\n/say after' }
const LIST = tool('TodoWrite', { todos: [] })

/** The package `openai` of npm, unmodified. */
export function openaiTests(product: RunningProduct): void {
  const client = (maxRetries = 0) => new OpenAI({ baseURL: `${product().url}/openai/v1`, apiKey: 'none', maxRetries })
  const respond = (input: OpenAI.Responses.ResponseInput | string, rest: object = {}) =>
    client().responses.create({ model: 'main', input, ...rest }) as Promise<ModelResponse>
  const types = ({ output }: ModelResponse) => output.map(({ type }) => type)
  const itemOf = <T extends ResponseOutputItem['type']>({ output }: ModelResponse, type: T) =>
    output.find((item) => item.type === type) as Extract<ResponseOutputItem, { type: T }> | undefined
  const goOn = (asked: ModelResponse, approve = true) =>
    respond(
      [
        {
          type: 'mcp_approval_response',
          approval_request_id: itemOf(asked, 'mcp_approval_request')?.id ?? '',
          approve,
        },
      ],
      { previous_response_id: asked.id },
    )

  const errorOf = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (cause: InstanceType<typeof OpenAI.APIError>) => cause,
    )

  it('chat completions take a history with a system message, and answer whole or as a stream with usage', async () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'hello' },
      { role: 'user', content: `${LIST}\n/say done` },
    ] as OpenAI.ChatCompletionMessageParam[]
    const whole = await client().chat.completions.create({ model: 'main', messages })
    expect(whole.choices[0]).to.deep.include({ finish_reason: 'stop' })
    expect(whole.choices[0]?.message.content).to.match(/^done\n\nTodoWrite answered/)
    expect(whole.usage?.total_tokens).to.be.above(10)
    const stream = await client().chat.completions.create({
      ...{ model: 'main', messages, stream: true, stream_options: { include_usage: true } },
    } as OpenAI.ChatCompletionCreateParamsStreaming)
    let [text, usage] = ['', 0]
    for await (const { choices, usage: used } of stream) {
      text += choices[0]?.delta.content ?? ''
      usage += used?.total_tokens ?? 0
    }
    expect([text, usage]).to.deep.equal([whole.choices[0]?.message.content, whole.usage?.total_tokens])
  })

  it('D48.2: files are uploaded, named in a message, listed, read and deleted', async () => {
    const { files } = client()
    const added = await files.create({ file: new File(['%PDF-1.7 plan'], 'plan.pdf'), purpose: 'user_data' })
    expect(added).to.include({ object: 'file', bytes: 13, filename: 'plan.pdf', purpose: 'user_data' })
    const content = [
      { type: 'input_text', text: 'Sum it up.' },
      { type: 'input_file', file_id: added.id },
    ] as const
    const answer = await respond([{ role: 'user', content: [...content] }])
    expect(answer.output_text).to.include('[attached: "attachments/plan.pdf", application/pdf, 1 KiB]')
    expect((await files.list({ limit: 100 })).data.map(({ id }) => id)).to.include(added.id)
    expect(await (await files.content(added.id)).text()).to.equal('%PDF-1.7 plan')
    expect(await files.delete(added.id)).to.deep.equal({ id: added.id, object: 'file', deleted: true })
    expect(await errorOf(files.retrieve(added.id))).to.include({ status: 404 })
  })

  const openChat = (content: string) =>
    client()
      .chat.completions.create({ model: 'main', messages: [{ role: 'user', content }], stream: true })
      .withResponse()

  it("a chat completion waits for an approval that comes from elsewhere, also a sub-agent's: allowed, denied or edited", async () => {
    const edited = { path: 'b.txt', content: 'other' }
    for (const [prompt, reply, wanted] of [
      [write('a.txt'), { allow: true }, 'Write answered'],
      [write('a.txt'), { allow: false, reason: 'not on a Friday' }, 'not on a Friday'],
      [write('a.txt'), { allow: true, input: edited }, 'The user changed the input'],
      [agent(write('a.txt'), '/say wrote it'), { allow: true }, 'Agent answered'],
    ] as const) {
      const stream = await openChat(prompt)
      await replyNatively(product(), stream.response.headers.get('x-run-id') ?? '', reply)
      let text = ''
      for await (const { choices } of stream.data) text += choices[0]?.delta.content ?? ''
      expect(text).to.include(wanted)
    }
  })

  it('a chat completion that another client cancels ends with an error', async () => {
    const stream = await openChat('/say before\n/sleep 60000')
    const broken = errorOf(
      (async () => {
        for await (const _ of stream.data);
      })(),
    )
    await product().call('DELETE', `/runs/${stream.response.headers.get('x-run-id')}`)
    expect(await broken).to.include({ code: 'cancelled' })
  })

  it("a response has the server's calls as items, and the next one goes on with the conversation", async () => {
    const first = await respond(`/think hm\n${LIST}\n/say done`, { instructions: 'Be brief.' })
    expect(first.status).to.equal('completed')
    expect(types(first)).to.deep.equal(['reasoning', 'message', 'mcp_call', 'message', 'message'])
    expect(itemOf(first, 'mcp_call')).to.include({
      name: 'TodoWrite',
      server_label: 'agent-engine',
      status: 'completed',
    })
    expect(first.output_text).to.include('done')
    const second = await respond('/say again', { previous_response_id: first.id })
    expect([types(second), second.output_text]).to.deep.equal([['message'], 'again'])
    expect(second.previous_response_id).to.equal(first.id)
  })

  it('a response ends at an approval request; allowed and denied, the next one goes on with the same run', async () => {
    for (const allow of [true, false]) {
      const asked = await respond(`${write('a.txt')}\n/say bye`)
      expect(types(asked)).to.deep.equal(['message', 'mcp_approval_request'])
      const rest = await goOn(asked, allow)
      const call = itemOf(rest, 'mcp_call')
      expect(call).to.include({ status: allow ? 'completed' : 'failed', name: 'Write' })
      expect(call?.approval_request_id).to.equal(itemOf(asked, 'mcp_approval_request')?.id)
      expect(rest.output_text).to.include('bye')
    }
  })

  it("a sub-agent's approval and a second one end their responses in turn", async () => {
    const first = await respond(`${agent(write('a.txt'))}\n${write('b.txt')}\n/say bye`)
    const second = await goOn(first)
    expect(types(second)).to.deep.equal(['mcp_call', 'mcp_approval_request'])
    const third = await goOn(second)
    expect(third.output_text).to.include('bye')
    const again = await client().responses.retrieve(second.id)
    expect(again.output).to.deep.equal(second.output)
  })

  it("a stream is what the package's accumulator accepts, and goes on behind the event that a client has", async () => {
    const runner = client().responses.stream({ model: 'main', input: `/think hm\n${LIST}\n/sleep 100\n/say done` })
    const events: { type: string; sequence_number: number }[] = []
    runner.on('event', (event) => events.push(event))
    const final = await runner.finalResponse()
    expect(final.output_text).to.include('done')
    expect(events.map(({ sequence_number: number }) => number)).to.deep.equal(events.map((_, i) => i))
    const rest = await client().responses.retrieve(final.id, { stream: true, starting_after: 9 })
    const seen: number[] = []
    for await (const event of rest) seen.push(event.sequence_number)
    expect(seen).to.deep.equal(events.slice(10).map((_, i) => i + 10))
  })

  it('a stream that was cut off goes on behind the last event that came, while the run does', async () => {
    const before = await client().responses.create({ ...CUT, model: 'main', stream: true })
    const seen: OpenAI.Responses.ResponseStreamEvent[] = []
    for await (const event of before) {
      seen.push(event)
      if (event.type === 'response.output_text.done' && event.text === 'before') break // Leaving the loop ends the connection.
    }
    const [created, last] = [seen[0], seen.at(-1)?.sequence_number ?? 0]
    const id = created?.type === 'response.created' ? created.response.id : ''
    for await (const event of await client().responses.retrieve(id, { stream: true, starting_after: last }))
      seen.push(event)
    expect(seen.map(({ sequence_number: number }) => number)).to.deep.equal(seen.map((_, i) => i))
    const end = seen.at(-1)
    expect(end?.type === 'response.completed' && end.response.output.length).to.equal(3)
  })

  it('a response in the background can be read while it goes on, and cancelled', async () => {
    const begun = await respond('/say before\n/sleep 60000', { background: true })
    expect(begun.status).to.equal('in_progress')
    expect((await client().responses.retrieve(begun.id)).status).to.equal('in_progress')
    const cancelled = await client().responses.cancel(begun.id)
    expect([cancelled.id, cancelled.status]).to.deep.equal([begun.id, 'cancelled'])
  })

  it("failures and refusals have OpenAI's shape", async () => {
    const failed = await respond('/fail provider_rejected')
    expect([failed.status, failed.error?.code]).to.deep.equal(['failed', 'server_error'])
    const upstream = await errorOf(
      client().chat.completions.create({
        model: 'main',
        messages: [{ role: 'user', content: '/fail provider_rejected' }],
      }),
    )
    expect(upstream).to.include({ status: 502, code: 'provider_rejected' })
    const own = [{ type: 'function' as const, function: { name: 'Read', parameters: {} } }]
    const refused = await errorOf(
      client().chat.completions.create({ model: 'main', messages: [{ role: 'user', content: 'hi' }], tools: own }),
    )
    expect(refused).to.be.instanceOf(OpenAI.BadRequestError)
    expect(refused).to.include({ param: '/tools/0/name', type: 'invalid_request_error' })
    expect(await errorOf(client().responses.retrieve('resp_x'))).to.be.instanceOf(OpenAI.NotFoundError)
    const stream = await client().chat.completions.create({
      ...{ model: 'main', messages: [{ role: 'user', content: '/say a\n/fail provider_rejected' }], stream: true },
    } as OpenAI.ChatCompletionCreateParamsStreaming)
    const broken = await errorOf(
      (async () => {
        for await (const _ of stream);
      })(),
    )
    expect(broken).to.include({ code: 'provider_rejected' })
  })

  it("D46.1: runTools() of the package calls the caller's own tools, whole and as a stream, until the model has its answer", async () => {
    const asked: unknown[] = []
    const order = {
      type: 'function' as const,
      function: {
        name: 'get_order',
        description: 'Looks an order up.',
        parameters: { type: 'object' as const, properties: { id: { type: 'string' as const } }, required: ['id'] },
        parse: JSON.parse as (text: string) => { id: string },
        function: ({ id }: { id: string }) => {
          asked.push(id)
          return `${id} was sent`
        },
      },
    }
    const content = `/say I look.\n${tool('get_order', { id: 'A' })}\n${tool('get_order', { id: 'B' })}\n/say done`
    for (const stream of [false, true]) {
      const request = { model: 'main', messages: [{ role: 'user' as const, content }], tools: [order] }
      const runner = stream
        ? client().chat.completions.runTools({ ...request, stream })
        : client().chat.completions.runTools(request)
      expect(await runner.finalContent())
        .to.include('done')
        .and.include('get_order answered: B was sent')
    }
    expect(asked).to.deep.equal(['A', 'B', 'A', 'B'])
  })

  it("D46.2: a response ends with the caller's own calls, beside an approval; the next one brings the outputs, with its id or with the whole list", async () => {
    const tools = [{ type: 'function' as const, name: 'get_order', parameters: { type: 'object' }, strict: false }]
    const content = `${tool('get_order', { id: 'A' })}\n${tool('get_order', { id: 'B' })}\n/say bye`
    const outputs = (response: ModelResponse) =>
      response.output.flatMap((item) =>
        item.type === 'function_call'
          ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: `sent ${item.arguments}` }]
          : [],
      )
    let asked = await respond(content, { tools })
    expect(types(asked)).to.deep.equal(['message', 'function_call'])
    expect(itemOf(asked, 'function_call')).to.include({
      name: 'get_order',
      arguments: '{"id":"A"}',
      status: 'completed',
    })
    for (let i = 0; i < 2; i++) asked = await respond(outputs(asked), { previous_response_id: asked.id, tools })
    expect(asked.output_text).to.include('bye').and.include('get_order answered: sent {"id":"B"}')
    // Some packages name no response, and send the list of all items.
    const list: OpenAI.Responses.ResponseInput = [{ role: 'user', content }]
    for (;;) {
      const response = await client().responses.stream({ model: 'main', input: list, tools }).finalResponse()
      list.push(...(response.output as OpenAI.Responses.ResponseInputItem[]), ...outputs(response))
      if (outputs(response).length > 0) continue
      expect(response.output_text).to.include('bye').and.include('sent {"id":"B"}')
      break
    }
    list.push({ role: 'user', content: '/say again' })
    expect((await respond(list, { tools })).output_text).to.equal('again')
    const foreign = await errorOf(respond([{ type: 'function_call_output', call_id: 'call_1', output: '' }], { tools }))
    expect(foreign).to.include({ status: 400, param: '/input/0/call_id' })
  })

  it('D41.5: parse() of chat completions and of responses gets the value of its zod schema, whole and as a stream', async () => {
    const Weather = z.object({ city: z.string(), degrees: z.number() })
    const oslo = { city: 'Oslo', degrees: 3 }
    const content = `/say I look first.\n${LIST}\n/say ${JSON.stringify(oslo)}`
    const asked = {
      ...{ model: 'main', messages: [{ role: 'user' as const, content }] },
      response_format: zodResponseFormat(Weather, 'weather'),
    }
    const whole = await client().chat.completions.parse(asked)
    expect(whole.choices[0]?.message.parsed).to.deep.equal(oslo)
    const streamed = await client().chat.completions.stream(asked).finalChatCompletion()
    expect(streamed.choices[0]?.message.parsed).to.deep.equal(oslo)
    const text = { format: zodTextFormat(Weather, 'weather') }
    const response = await client().responses.parse({ model: 'main', input: content, text })
    expect([response.output_parsed, response.text?.format]).to.deep.equal([oslo, { ...text.format }])
    const { output_parsed } = await client().responses.stream({ model: 'main', input: content, text }).finalResponse()
    expect(output_parsed).to.deep.equal(oslo)
    const again = await client().responses.retrieve(response.id)
    expect(again.output_text).to.equal(JSON.stringify(oslo))
  })

  it('D41.5: json_object is an object, and a format that is not done is 400 with its place', async () => {
    const messages = [{ role: 'user' as const, content: '/say {"a": 1}' }]
    const format = { type: 'json_object' as const }
    const { choices } = await client().chat.completions.create({ model: 'main', messages, response_format: format })
    expect(choices[0]?.message.content).to.equal('{"a":1}')
    const refused = async (body: object) => {
      const create = client().chat.completions.create({ model: 'main', messages, ...body })
      return (await errorOf(create))?.param
    }
    const remote = { name: 'a', schema: { $ref: 'https://example.com/a.json' } }
    for (const [body, param] of [
      [{ response_format: { type: 'grammar' } }, '/response_format/type'],
      [{ response_format: { type: 'json_schema', json_schema: remote } }, '/response_format/json_schema/schema/$ref'],
      [{ model: 'flow:summarize', response_format: format }, '/response_format'],
      [{ temperature: 9 }, '/temperature'],
      [{ max_tokens: 0 }, '/max_tokens'],
      [{ tool_choice: { type: 'function', function: { name: 'mine' } } }, '/tool_choice/name'],
    ] as const)
      expect(await refused(body)).to.equal(param)
    const { response } = await client()
      .chat.completions.create({
        model: 'main',
        messages,
        seed: 1,
        top_p: 0.5,
        user: 'me',
        reasoning_effort: 'minimal',
      })
      .withResponse()
    expect(response.headers.get('x-ignored-fields')).to.equal('/seed, /top_p, /user, /reasoning_effort')
  })

  it('50 streams at a time, chat completions and responses, get their own answers', async () => {
    const completed = async (content: string) => {
      const request = { model: 'main', messages: [{ role: 'user' as const, content }], stream: true as const }
      let text = ''
      for await (const { choices } of await client(BUSY_TRIES).chat.completions.create(request))
        text += choices[0]?.delta.content ?? ''
      return text
    }
    const responded = async (input: string) => {
      const { output } = await client(BUSY_TRIES).responses.stream({ model: 'main', input }).finalResponse()
      const texts = output.flatMap((item) => (item.type === 'message' ? item.content : []))
      return texts.map((part) => (part.type === 'output_text' ? part.text : '')).join('\n\n')
    }
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => (i % 2 ? completed : responded)(`/say number ${i} is here`)),
    )
    for (const [i, text] of answers.entries()) expect(text).to.match(new RegExp(`\\n\\nnumber ${i} is here$`))
  })

  it('models are the route, the model behind it, and the published flows', async () => {
    const ids = (await client().models.list()).data.map(({ id }) => id)
    expect(ids).to.include('main')
  })
}
