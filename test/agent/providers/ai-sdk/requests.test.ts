import { expect } from 'chai'
import { createProvider } from '../../../../services/wiring/models/create-provider.ts'
import type { Message, ModelProvider, ModelRequest, ToolResultBlock } from '../../../../shared/agent/providers/port.ts'
import { useModelServer } from '../../../support/model-server/model-server.ts'
import { ask, connect, DIALECTS, type Dialect, KEY, partsOf, request, textOf } from './setup.ts'

const READ = {
  name: 'Read',
  description: 'Reads a file.',
  inputSchema: { type: 'object', properties: { path: { type: 'string' } } },
}

/** The history after a tool round trip, as the engine keeps it. */
async function afterTools(provider: ModelProvider, asked: ModelRequest, output = 'it says so'): Promise<Message[]> {
  const parts = await ask(provider, asked)
  const calls = partsOf(parts, 'tool_call')
  const meta = partsOf(parts, 'thinking_end')[0]?.meta
  const thought = textOf(parts, 'thinking_delta')
  const blocks = calls.map(({ id, toolName, input, meta: own }) => ({
    type: 'tool_use' as const,
    id,
    toolName,
    input: JSON.parse(input),
    ...(own && { meta: own }),
  }))
  const results: ToolResultBlock[] = calls.map(({ id, toolName }) => ({ id, toolName, output, isError: false }))
  return [
    ...asked.messages,
    { role: 'assistant', blocks: [{ type: 'thinking', text: thought, ...(meta && { meta }) }, ...blocks] },
    { role: 'tool', results },
  ]
}

describe('the request to a provider', () => {
  const server = useModelServer({ perTest: true })

  /** The body of the second request, which contains a tool round trip. */
  async function roundTrip(dialect: Dialect): Promise<string> {
    const provider = await connect(dialect, server)
    server.answer([{ thinking: 'let me see' }, { tool: 'Read', input: { path: 'a' } }])
    const messages = await afterTools(provider, request({ tools: [READ] }))
    await ask(provider, request({ tools: [READ], messages }))
    return JSON.stringify(server.requests[1]?.body)
  }

  for (const dialect of DIALECTS) {
    it(`contains a tool's result with its call, over ${dialect}`, async () => {
      await roundTrip(dialect)
      expect(server.requests[0]?.streamed).to.equal(true)
      expect(JSON.stringify(server.requests[0]?.body)).to.include('"Reads a file."')
      expect(server.requests[1]?.results.map(({ text }) => text).join()).to.include('it says so')
    })

    it(`D1.3 MODEL_API_KEY: carries the key in the header of ${dialect}`, async () => {
      await ask(await connect(dialect, server))
      const { authorization, 'x-api-key': anthropic, 'x-goog-api-key': google } = server.requests[0]?.headers ?? {}
      const own = { anthropic, google }[dialect as 'google'] ?? authorization
      expect(own).to.be.oneOf([KEY, `Bearer ${KEY}`])
    })
  }

  it("contains Anthropic's signed thinking after a tool round trip", async () => {
    const body = await roundTrip('anthropic')
    expect(body).to.match(/\{"type":"thinking","thinking":"let me see","signature":"Er[0-9a-f]+"\}/)
  })

  it("contains Google's thought signatures after a tool round trip", async () => {
    expect(await roundTrip('google')).to.include('"thoughtSignature":"EpEgCo4gAb4="')
  })

  it("contains OpenAI's reasoning as the item it was, and asks OpenAI to store nothing", async () => {
    const body = await roundTrip('openai')
    expect(server.requests.map(({ format }) => format)).to.deep.equal(['openai-responses', 'openai-responses'])
    expect(body).to.include('"type":"reasoning"').and.to.include('let me see')
    expect(server.requests[0]?.body).to.include({ store: false })
  })

  it('contains `reasoning_content` for a server that sent it, until the next message of the user', async () => {
    expect(await roundTrip('openai-compatible')).to.include('"reasoning_content":"let me see"')
    const provider = await connect('openai-compatible', server)
    server.answer([{ thinking: 'hm' }, { tool: 'Read' }])
    const messages = await afterTools(provider, request())
    await ask(provider, request({ messages: [...messages, { role: 'user', text: 'and now?' }] }))
    expect(JSON.stringify(server.requests.at(-1)?.body)).not.to.include('reasoning_content')
  })

  it('contains nothing that another provider signed, and tool ids of other providers in an accepted form', async () => {
    const meta = { google: { thoughtSignature: 'foreign' } }
    const messages: Message[] = [
      { role: 'user', text: 'hi' },
      {
        role: 'assistant',
        blocks: [
          { type: 'thinking', text: 'foreign thought', meta },
          { type: 'text', text: 'I look.' },
          { type: 'tool_use', id: 'functions.Read:0', toolName: 'Read', input: {}, meta },
        ],
      },
      { role: 'tool', results: [{ id: 'functions.Read:0', toolName: 'Read', output: 'gone', isError: true }] },
    ]
    for (const dialect of ['openai-compatible', 'openai', 'anthropic'] as const) {
      await ask(await connect(dialect, server), request({ messages }))
      expect(JSON.stringify(server.requests.at(-1)?.body), dialect)
        .to.include('I look.')
        .and.not.include('foreign')
    }
    expect(JSON.stringify(server.requests.at(-1)?.body)).to.include('"tool_use_id":"call_')
    expect(JSON.stringify(server.requests.at(-1)?.body)).to.include('"is_error":true')
  })

  it('contains the system prompt and the whole history', async () => {
    const messages: Message[] = [
      { role: 'user', text: 'one' },
      { role: 'assistant', blocks: [{ type: 'text', text: 'two' }] },
      { role: 'user', text: 'three' },
    ]
    for (const dialect of DIALECTS) {
      await ask(await connect(dialect, server), request({ system: 'be brief', messages }))
      const body = JSON.stringify(server.requests.at(-1)?.body)
      expect(body, dialect)
        .to.include('be brief')
        .and.to.match(/"one".*"two".*"three"/)
      expect(server.requests.at(-1)?.prompt, dialect).to.equal('three')
    }
  })

  it("is in Ollama's own format when its base URL names a host only, and carries no key", async () => {
    const provider = await createProvider({ type: 'ollama', baseUrl: new URL(server.url).origin })
    expect(textOf(await ask(provider))).to.equal('ok')
    expect(server.requests[0]).to.include({ path: '/api/chat' })
    expect(server.requests[0]?.headers).not.to.have.property('authorization')
  })

  it("to Google keeps its path whatever the model's id contains", async () => {
    await ask(await connect('google', server), request({ model: 'x/../../files?a=' }))
    expect(server.requests[0]?.path).to.equal('/v1beta/models/x%2F..%2F..%2Ffiles%3Fa%3D:streamGenerateContent')
  })

  it('asks for usage where the format omits it by default', async () => {
    await ask(await connect('openai-compatible', server))
    expect(server.requests[0]?.body['stream_options']).to.deep.equal({ include_usage: true })
  })
})
