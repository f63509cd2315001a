import { Readable } from 'node:stream'
import { expect } from 'chai'
import { type ChatSettings, createChatProvider } from '../../../../shared/agent/providers/chat/chat.ts'
import { MODEL_LIMITS } from '../../../../shared/agent/providers/limits.ts'
import { LeftOut } from '../../../../shared/agent/providers/unsupported-options.ts'
import { ask, partsOf, request } from '../ai-sdk/setup.ts'

/** A provider, and the requests that it has sent, each of which fails. */
function openProvider(fields: Partial<ChatSettings> = {}) {
  const sent: { url: string; headers: object; method: string }[] = []
  const { type = 'openai-compatible' } = fields
  const leftOut = new LeftOut(type)
  const provider = createChatProvider({
    ...{ type, baseUrl: 'http://models.test', apiKey: 'k', limits: MODEL_LIMITS, options: {}, leftOut },
    ...{ instance: undefined, proxy: undefined },
    send: (url, { headers, method }) => {
      sent.push({ url, headers, method })
      return Promise.reject(new Error('enough'))
    },
    ...fields,
  })
  return { provider, sent, leftOut }
}

const HEADERS = { 'content-type': 'application/json', 'accept-encoding': 'identity', 'user-agent': 'agent-engine' }

describe("a provider over OpenAI's chat format", () => {
  it('posts to the address below its base, and in its own format to an Ollama that is named by its host or its API', async () => {
    for (const [type, baseUrl, url] of [
      ['openai-compatible', 'http://models.test/v2', 'http://models.test/v2/chat/completions'],
      ['ollama', undefined, 'http://127.0.0.1:11434/api/chat'],
      ['ollama', 'http://models.test:1//', 'http://models.test:1/api/chat'],
      ['ollama', 'http://models.test/api/', 'http://models.test/api/chat'],
      ['ollama', 'http://models.test/v1', 'http://models.test/v1/chat/completions'],
    ] as const) {
      const { provider, sent } = openProvider({ type, baseUrl })
      await ask(provider)
      expect(sent).to.deep.equal([{ url, method: 'POST', headers: { ...HEADERS, authorization: 'Bearer k' } }])
    }
  })

  it('sends its own headers and no key where it has none', async () => {
    const { provider, sent } = openProvider({ apiKey: undefined, options: { headers: { 'x-team': 'blue' } } })
    await ask(provider)
    expect(sent[0]?.headers).to.deep.equal({ ...HEADERS, 'x-team': 'blue' })
  })

  it('sends nothing with a key that no header can hold, and fails each call by that', async () => {
    const { provider, sent } = openProvider({ apiKey: 'two\nlines' })
    expect(partsOf(await ask(provider), 'failure')[0]?.failure).to.include({ code: 'provider_auth' })
    expect(sent).to.deep.equal([])
  })

  it('sends a request again without what the server has refused, and not at all for another refusal', async () => {
    const bodies: string[] = []
    const answer = (status: number, text: string) => ({ status, headers: {}, body: Readable.from([Buffer.from(text)]) })
    const refuse = (message: string) => JSON.stringify({ error: { message } })
    const { provider } = openProvider({
      options: { temperature: 1 },
      send: async (_url, { body }) => {
        bodies.push(String(Buffer.from(body)))
        if (bodies.length === 1) return answer(400, refuse('temperature is not supported'))
        return bodies.length === 2
          ? answer(200, 'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n')
          : answer(400, refuse('no such model'))
      },
    })
    expect((await ask(provider)).map(({ type }) => type)).to.deep.equal(['text_delta', 'text_end', 'finish'])
    expect(bodies.map((body) => body.includes('temperature'))).to.deep.equal([true, false])
    expect(partsOf(await ask(provider), 'failure')[0]?.failure).to.include({ code: 'provider_rejected' })
  })

  it('fails at a page of something in between, and tells of the limits that a server names', async () => {
    const told: unknown[] = []
    const send = (headers: Record<string, string>) => async () => ({
      status: 200,
      headers,
      body: Readable.from([Buffer.from('<html>')]),
    })
    const asked = request({ onTold: (limits) => told.push(limits) })
    const page = openProvider({
      send: send({
        'content-type': 'text/html; charset=utf-8',
        'x-ratelimit-limit-requests': '7',
        'x-ratelimit-remaining-requests': '3',
      }),
    })
    const plain = openProvider({ send: send({}) })
    const messages = await Promise.all(
      [page, plain].map(async ({ provider }) => partsOf(await ask(provider, asked), 'failure')[0]?.failure.reason),
    )
    expect(messages[0]).to.not.equal(messages[1])
    expect(JSON.stringify(told[0])).to.include('7')
  })

  it('says of itself what it takes: tools until a model has refused them, and files by their types', () => {
    const { provider, leftOut } = openProvider({ instance: 'main', options: { context_window: 9 } })
    expect(provider).to.include({ type: 'openai-compatible', instance: 'main', contextWindow: 9 })
    leftOut.add('small', 'tools')
    expect(['small', 'large'].map((model) => provider.takesTools?.(model))).to.deep.equal([false, true])
    const types = ['image/png', 'application/pdf', 'audio/wav', 'audio/mpeg', 'audio/ogg', 'text/plain', 'font/ttf']
    const takenBy = (of: Partial<ChatSettings>) =>
      types.filter((mediaType) => openProvider(of).provider.takesFile?.('large', mediaType))
    expect(takenBy({})).to.deep.equal(['image/png', 'application/pdf', 'audio/wav', 'audio/mpeg', 'text/plain'])
    expect(takenBy({ type: 'ollama' })).to.deep.equal(['image/png', 'text/plain'])
  })

  it('can be asked for the window and the capabilities of a model at Ollama alone', () => {
    for (const [type, isAsked] of [
      ['ollama', true],
      ['openai-compatible', false],
    ] as const) {
      const { provider } = openProvider({ type })
      expect([provider.askWindow !== undefined, provider.askCapabilities !== undefined]).to.deep.equal([
        isAsked,
        isAsked,
      ])
    }
  })
})
