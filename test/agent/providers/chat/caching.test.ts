import { expect } from 'chai'
import { createProvider } from '../../../../services/wiring/models/create-provider.ts'
import type { Message, Send } from '../../../../shared/agent/providers/port.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { type ModelServer, startModelServer } from '../../../support/model-server/model-server.ts'
import { ask, connect, request } from '../ai-sdk/setup.ts'

const FIRST: Message[] = [{ role: 'user', text: 'one' }]
const LATER: Message[] = [
  ...FIRST,
  { role: 'assistant', blocks: [{ type: 'tool_use', id: 'a', toolName: 'Read', input: {} }] },
  { role: 'tool', results: [{ id: 'a', toolName: 'Read', output: 'it says so', isError: false }] },
]

/** The messages that a provider at OpenRouter sends. */
async function sentTo(model: string, messages: Message[], baseUrl = 'https://openrouter.ai/api/v1') {
  let sent: JsonObject = {}
  const send: Send = (_url, { body }) => {
    sent = JSON.parse(String(Buffer.from(body)))
    return Promise.reject(new Error('enough'))
  }
  const provider = await createProvider({ type: 'openai-compatible', baseUrl, apiKey: 'k', send })
  await ask(provider, request({ model, system: 'be brief', messages }))
  return sent['messages'] as { role: string; content: unknown }[]
}

const isMarked = ({ content }: { content: unknown }) =>
  JSON.stringify(content ?? '').includes('"cache_control":{"type":"ephemeral"}')

describe('Claude behind OpenRouter', () => {
  it('gets cache points behind the system prompt, at the end, and at the end of the request before', async () => {
    expect((await sentTo('anthropic/claude-sonnet-4.5', FIRST)).map(isMarked)).to.deep.equal([true, true])
    const later = await sentTo('anthropic/claude-sonnet-4.5', LATER)
    expect(later.map(isMarked)).to.deep.equal([true, true, false, true])
    expect(later.at(-1)?.content).to.deep.equal([
      { type: 'text', text: 'it says so', cache_control: { type: 'ephemeral' } },
    ])
  })

  it('gets them there only, and no other model gets them', async () => {
    const others = [
      ...(await sentTo('openai/gpt-5.1', LATER)),
      ...(await sentTo('anthropic/claude-sonnet-4.5', LATER, 'https://gateway.test/v1')),
    ]
    expect(others.filter(isMarked)).to.deep.equal([])
  })
})

describe('prompt_cache_key', () => {
  let server: ModelServer
  beforeEach(async () => {
    server = await startModelServer()
  })
  afterEach(() => server.close())

  const keyOf = (index: number) => server.requests[index]?.body['prompt_cache_key']

  for (const dialect of ['openai', 'openai behind a gateway'] as const) {
    it(`is the same for all requests over ${dialect} that begin alike, and tells nothing of them`, async () => {
      const provider = await connect(dialect, server)
      const other: Message[] = [{ role: 'user', text: 'two' }]
      for (const messages of [FIRST, LATER, other]) await ask(provider, request({ system: 'be brief', messages }))
      await ask(provider, request({ system: 'be long', messages: FIRST }))
      expect(keyOf(0)).to.match(/^[0-9a-f]{32}$/)
      expect([keyOf(1), keyOf(2)]).to.deep.equal([keyOf(0), keyOf(0)])
      expect(keyOf(3)).not.to.equal(keyOf(0))
    })
  }

  it('is sent to OpenAI only', async () => {
    for (const dialect of ['openai-compatible', 'ollama', 'anthropic', 'google'] as const) {
      await ask(await connect(dialect, server))
      expect(JSON.stringify(server.requests.at(-1)?.body), dialect).not.to.match(/cache_?key/i)
    }
  })
})
