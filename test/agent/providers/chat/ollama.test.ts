import { expect } from 'chai'
import { createOllamaBody, ollamaChunk } from '../../../../shared/agent/providers/chat/ollama.ts'
import type { AssistantBlock, ModelRequest } from '../../../../shared/agent/providers/port.ts'
import { LeftOut } from '../../../../shared/agent/providers/unsupported-options.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import type { ModelOptions } from '../../../../shared/kernel/model-options.ts'
import { useModelServer } from '../../../support/model-server/model-server.ts'
import { ask, connect, never, partsOf, request, textOf } from '../ai-sdk/setup.ts'

const TOOL = { name: 'Read', description: 'Reads a file.', inputSchema: { type: 'object', properties: {} } }

/** Builds bodies as for one server. */
function bodiesFor(options: ModelOptions = {}, window?: number) {
  const lines: string[] = []
  const leftOut = new LeftOut('ollama', (line) => lines.push(line))
  const toBody = createOllamaBody({ options, leftOut, origin: 'models.test', windowOf: () => window })
  const bodyOf = (asked: Partial<ModelRequest> = {}) => {
    const { json, optionalParts } = toBody(request(asked))
    return { ...(JSON.parse(String(Buffer.from(json))) as JsonObject), parts: optionalParts }
  }
  return { bodyOf, leftOut, lines }
}

describe("the body of a request in Ollama's own format", () => {
  const plain = {
    ...{ model: 'test-model', messages: [{ role: 'user', content: 'hi' }], stream: true },
    ...{ truncate: false, shift: false, parts: [] },
  }
  const attachments = [{ name: 'a.png', mediaType: 'image/png', base64: 'AA==' }]
  const results = [{ id: 'a', toolName: 'Read', output: 'a.png', isError: false, attachments }]
  const tools = [TOOL]

  it('D5.8: has nothing that was not asked for, and asks to refuse what is too long in place of cutting it', () => {
    expect(bodiesFor().bodyOf()).to.deep.equal(plain)
    expect(bodiesFor({ parallel_tool_calls: false }).bodyOf({ choices: { toolChoice: 'required' } })).to.deep.equal(
      plain,
    )
  })

  const EFFORTS = { none: false, minimal: 'low', low: 'low', medium: 'medium', high: 'high', xhigh: 'high' } as const
  for (const [effort, think] of Object.entries(EFFORTS))
    it(`has the effort ${effort} as ${JSON.stringify(think)}, unless the server has refused it`, () => {
      const { bodyOf, leftOut } = bodiesFor({ reasoning_effort: effort as keyof typeof EFFORTS })
      expect(bodyOf()).to.deep.equal({ ...plain, think, parts: ['reasoning_effort'] })
      leftOut.add('test-model', 'reasoning_effort')
      expect(bodyOf()).to.deep.equal(plain)
    })

  it('D5.8: has the options of the model, each until the server refuses it, and the window that it has told', () => {
    const { bodyOf, leftOut } = bodiesFor({ max_output_tokens: 7, temperature: 0 }, 8_192)
    const options = { num_ctx: 8_192, num_predict: 7, temperature: 0 }
    const parts = ['options', 'max_output_tokens', 'temperature']
    expect(bodyOf()).to.deep.equal({ ...plain, options, parts })
    for (const part of parts) leftOut.add('test-model', part)
    expect(bodyOf()).to.deep.equal(plain)
    expect(bodiesFor({ context_window: 9 }, 8_192).bodyOf()).to.deep.include({ options: { num_ctx: 9 } })
  })

  it('has tools unless there are to be none, and says that it has no field for a choice of them', () => {
    const { bodyOf, lines } = bodiesFor({ parallel_tool_calls: false })
    expect(bodyOf({ tools, choices: { toolChoice: { name: 'Read' } } }))
      .to.deep.include({ parts: ['tools'] })
      .and.have.property('tools')
    expect(lines).to.have.length(2)
    expect(lines.join()).to.include('tool_choice').and.include('parallel_tool_calls')
    expect(bodiesFor().bodyOf({ tools, choices: { toolChoice: 'none' } })).to.deep.equal(plain)
    expect(bodiesFor({ temperature: 1 }).bodyOf({ tools }).parts).to.deep.equal(['temperature', 'tools'])
  })

  it('has the form of the answer, and images apart from their text, unless the server has refused them', () => {
    const schema = { type: 'object' }
    expect(bodiesFor().bodyOf({ output: { name: 'n', schema } })).to.deep.equal({ ...plain, format: schema })
    const { bodyOf, leftOut } = bodiesFor()
    const shown = bodyOf({ messages: [{ role: 'tool', results }] })
    expect(shown.parts).to.deep.equal(['attachments'])
    expect((shown as JsonObject)['messages']).to.deep.equal([
      { role: 'tool', content: 'a.png', tool_call_id: 'a' },
      { role: 'user', content: 'The files of the tool results above:', images: ['AA=='] },
    ])
    const texts = ['text/plain', 'image/png'].map((mediaType) => ({ name: 'a', mediaType, base64: 'aGk=' }))
    const message = { role: 'user', text: 'look', attachments: texts } as const
    expect((bodyOf({ messages: [message] }) as JsonObject)['messages']).to.deep.equal([
      { role: 'user', content: 'look\n\n<attachment name="a">\nhi\n</attachment>', images: ['aGk='] },
    ])
    leftOut.add('test-model', 'attachments')
    expect(JSON.stringify(bodyOf({ messages: [{ role: 'tool', results }] }))).to.not.include('AA==')
  })

  it('has the thinking of the calls that are under way', () => {
    const meta = { chat: { origin: 'models.test', field: 'reasoning_content' } }
    const blocks: AssistantBlock[] = [
      { type: 'thinking', text: 'hm', meta },
      { type: 'tool_use', id: 'a', toolName: 'Read', input: {} },
    ]
    expect((bodiesFor().bodyOf({ messages: [{ role: 'assistant', blocks }] }) as JsonObject)['messages']).to.deep.equal(
      [
        {
          role: 'assistant',
          content: '',
          thinking: 'hm',
          tool_calls: [{ id: 'a', function: { name: 'Read', arguments: {} } }],
        },
      ],
    )
  })
})

describe("a line of Ollama's answer", () => {
  const chunkOf = (line: object) => ollamaChunk(JSON.stringify(line))

  it('is a chunk of the chat format, and the last one has its reason and its usage', () => {
    const delta = { content: 'a', reasoning_content: undefined, tool_calls: undefined }
    expect(chunkOf({ message: { content: 'a', thinking: '' }, prompt_eval_count: 1 })).to.deep.equal({
      ...{ chunk: { error: undefined, choices: [{ delta, finish_reason: null }], usage: null }, isLast: false },
    })
    expect(chunkOf({ message: { thinking: 'hm' } })).to.have.nested.property(
      'chunk.choices[0].delta.reasoning_content',
      'hm',
    )
    const usage = { prompt_tokens: 1, completion_tokens: 2 }
    const last = chunkOf({ done: true, prompt_eval_count: 1, eval_count: 2 })
    expect(last).to.deep.nested.include({
      isLast: true,
      'chunk.usage': usage,
      'chunk.choices[0].finish_reason': 'stop',
    })
    expect(chunkOf({ done: true, done_reason: 'length' })).to.have.nested.property(
      'chunk.choices[0].finish_reason',
      'length',
    )
    expect([ollamaChunk('[]'), chunkOf({ error: 'no' })?.chunk.error]).to.deep.equal([undefined, 'no'])
  })
})

describe("Ollama's own format", () => {
  const server = useModelServer({ perTest: true })

  const sent = async (options: ModelOptions, asked: Partial<ModelRequest> = {}) => {
    await ask(await connect('ollama natively', server, {}, options), request(asked))
    return server.requests.at(-1)?.body
  }

  it('D5.8: carries the configured window as num_ctx, with the other options of the model', async () => {
    const body = await sent({ context_window: 16_384, max_output_tokens: 77, temperature: 0, reasoning_effort: 'none' })
    expect(body).to.deep.include({ options: { num_ctx: 16_384, num_predict: 77, temperature: 0 }, think: false })
  })

  it('D5.8: carries the window that the server has told, so that the model is not loaded with another one', async () => {
    server.ollama = { loaded: { 'test-model': 8_192 }, numCtx: {} }
    const provider = await connect('ollama natively', server)
    await ask(provider)
    await provider.askWindow?.('test-model', never())
    await ask(provider)
    expect(server.requests.map(({ body }) => body['options'])).to.deep.equal([undefined, { num_ctx: 8_192 }])
  })

  it('has the arguments of calls as objects, and the name of the tool in their results', async () => {
    const body = await sent(
      {},
      {
        system: 'be brief',
        tools: [TOOL],
        messages: [
          { role: 'user', text: 'hi' },
          { role: 'assistant', blocks: [{ type: 'tool_use', id: 'a', toolName: 'Read', input: { path: 'x' } }] },
          { role: 'tool', results: [{ id: 'a', toolName: 'Read', output: 'it says so', isError: false }] },
        ],
      },
    )
    expect(body?.['messages']).to.deep.equal([
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 'a', function: { name: 'Read', arguments: { path: 'x' } } }],
      },
      { role: 'tool', content: 'it says so', tool_call_id: 'a', tool_name: 'Read' },
    ])
  })

  it('may have a line of any length in an answer of any length', async () => {
    server.answer([{ tokens: 12_000 }])
    const parts = await ask(await connect('ollama natively', server, { maxEventBytes: 4_096 }))
    expect(partsOf(parts, 'text_delta')).to.have.length(12_000)
    expect(parts.at(-1)).to.include({ type: 'finish' })
  })

  it('fails with the error of a line, and at a line that is not JSON', async () => {
    const reasonOf = async (raw: string) => {
      server.answer([{ text: 'so' }, { raw }])
      const parts = await ask(await connect('ollama natively', server))
      expect(textOf(parts)).to.equal('so')
      return partsOf(parts, 'failure')[0]?.failure.reason
    }
    expect(await reasonOf('{"error":"an error was encountered while running the model"}\n')).to.equal('stream_error')
    expect(await reasonOf('oops\n')).to.equal('bad_chunk')
  })
})
