import { expect } from 'chai'
import { createModels } from '../../../services/wiring/models/create-models.ts'
import { createProvider, type ProviderSettings } from '../../../services/wiring/models/create-provider.ts'
import { MODEL_LIMITS } from '../../../shared/agent/providers/limits.ts'
import type { Send } from '../../../shared/agent/providers/port.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { PROVIDER_NAMES, PROVIDER_TYPES } from '../../../shared/kernel/provider-types.ts'
import { ask, failureOf, partsOf } from '../../agent/providers/ai-sdk/setup.ts'
import { startModelServer } from '../../support/model-server/model-server.ts'

const refusal = async (settings: ProviderSettings): Promise<unknown> => {
  try {
    return await createProvider(settings)
  } catch (error) {
    return error
  }
}

/** The address to which a provider with these settings sends its request, whichever adapter it uses. */
async function addressOf(settings: ProviderSettings): Promise<string | undefined> {
  let address: string | undefined
  const note = (url: unknown) => {
    address = String(url)
    return Promise.reject(new Error('no connection in this test'))
  }
  const provider = await createProvider({ apiKey: 'k', ...settings, fetch: note, send: note })
  expect((await failureOf(provider)).code).to.equal('provider_unavailable')
  return address
}

/** Answers each request with the next list of chunks. */
function answering(...answers: object[][]): Send {
  return () => {
    const chunks = [...(answers.shift() ?? []), { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }]
    const events = chunks.map((chunk) => Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`))
    return Promise.resolve({ status: 200, headers: {}, body: ReadableStream.from(events) })
  }
}

/** A server of the chat format. */
const CHAT = { type: 'ollama', baseUrl: 'http://127.0.0.1:11434/v1' } as const

const delta = (fields: object) => ({ choices: [{ index: 0, delta: fields }] })

describe('the opening of providers', () => {
  it('D1.3 MODEL_PROVIDER: opens every type there is, under its own name', async () => {
    for (const type of PROVIDER_NAMES) {
      const provider = await createProvider({ type, baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'k' })
      expect(provider.type).to.equal(type)
    }
  })

  it('refuses an address that is missing or none, and says which variable holds it', async () => {
    for (const baseUrl of [
      undefined,
      'not a url',
      'file:///etc/passwd',
      'http://me:secret@host/v1',
      'http://me@host',
    ]) {
      const error = await refusal({ type: 'openai-compatible', ...(baseUrl !== undefined && { baseUrl }) })
      expect(error).to.be.instanceOf(AppError).and.include({ kind: 'invalid_request' })
      expect(error).to.have.property('message').that.includes('MODEL_BASE_URL').and.not.includes('secret')
    }
  })

  const ADDRESSES: [settings: ProviderSettings, address: string][] = [
    [{ type: 'openai' }, 'https://api.openai.com/v1/responses'],
    [{ type: 'openai', baseUrl: 'https://eu.api.openai.com/v1' }, 'https://eu.api.openai.com/v1/responses'],
    [{ type: 'openai', baseUrl: 'https://openai.com/v1' }, 'https://openai.com/v1/responses'],
    [{ type: 'openai', baseUrl: 'https://notopenai.com/v1' }, 'https://notopenai.com/v1/chat/completions'],
    [{ type: 'openai', baseUrl: 'https://openai.com.gw.test' }, 'https://openai.com.gw.test/v1/chat/completions'],
    [{ type: 'anthropic' }, 'https://api.anthropic.com/v1/messages'],
    [{ type: 'anthropic', baseUrl: 'https://gw.test/a' }, 'https://gw.test/a/v1/messages'],
    [
      { type: 'google' },
      'https://generativelanguage.googleapis.com/v1beta/models/test-model:streamGenerateContent?alt=sse',
    ],
    [{ type: 'ollama' }, 'http://127.0.0.1:11434/api/chat'],
    [{ type: 'ollama', baseUrl: 'http://gpu:11434' }, 'http://gpu:11434/api/chat'],
    [{ type: 'ollama', baseUrl: 'http://gpu:11434/api/' }, 'http://gpu:11434/api/chat'],
    [{ type: 'ollama', baseUrl: 'http://gpu:11434/v1' }, 'http://gpu:11434/v1/chat/completions'],
    [{ type: 'ollama', baseUrl: 'http://gpu:11434/v2/' }, 'http://gpu:11434/v2/chat/completions'],
    [{ type: 'openai-compatible', baseUrl: 'http://gpu:8000' }, 'http://gpu:8000/v1/chat/completions'],
  ]
  for (const [settings, address] of ADDRESSES) {
    it(`${settings.type} with ${settings.baseUrl ?? 'no base URL'} calls ${address}`, async () => {
      expect(await addressOf(settings)).to.equal(address)
    })
  }

  it('the given limits reach the adapter, and the others keep their defaults', async () => {
    const chunks = [delta({ content: 'x'.repeat(200) }), delta({ content: 'y' })]
    const limited = await createProvider({ ...CHAT, send: answering(chunks), limits: { maxEventBytes: 100 } })
    const failure = await failureOf(limited)
    expect(failure).to.include({ reason: 'event_bytes', message: 'ollama sent more than 100 bytes in one event' })
    const large = await createProvider({ ...CHAT, send: answering([delta({ content: 'x'.repeat(2_000_000) })]) })
    expect((await failureOf(large)).message).to.include(`more than ${MODEL_LIMITS.maxEventBytes} bytes in one event`)
    const fetch = () => Promise.resolve(new Response('data: {"candidates":[]}\n\n'))
    const google = await createProvider({ type: 'google', apiKey: 'k', fetch, limits: { maxTurnBytes: 10 } })
    expect(await failureOf(google)).to.include({ reason: 'turn_bytes' })
  })

  it('what one answer shows about a server counts for the later answers of the same provider only', async () => {
    const own = [delta({ reasoning_content: 'a' }), delta({ content: 'b' })]
    const other = [delta({ reasoning: 'a' }), delta({ content: 'b' })]
    const metasOf = async (send: Send) => {
      const provider = await createProvider({ ...CHAT, send })
      const parts = [...(await ask(provider)), ...(await ask(provider)), ...(await ask(provider))]
      return partsOf(parts, 'thinking_end').map(({ meta }) => meta)
    }
    const mark = { chat: { origin: '127.0.0.1:11434', field: 'reasoning_content' } }
    expect(await metasOf(answering(other, own, other))).to.deep.equal([undefined, mark, mark])
    expect(await metasOf(answering(other, other, other))).to.deep.equal([undefined, undefined, undefined])
  })

  it('a refused key is reported with the variables that may hold it', async () => {
    const send: Send = () => Promise.resolve({ status: 401, headers: {}, body: ReadableStream.from([]) })
    const fetch = () => Promise.resolve(new Response('', { status: 401 }))
    for (const type of PROVIDER_NAMES.filter((name) => name !== 'demo')) {
      const provider = await createProvider({ type, baseUrl: 'http://model.test/v1', apiKey: 'k', send, fetch })
      const [usual] = PROVIDER_TYPES[type].keyVariables
      const variables = usual === undefined ? 'MODEL_API_KEY' : `MODEL_API_KEY or ${usual}`
      expect((await failureOf(provider)).message).to.match(new RegExp(`check ${variables}$`))
    }
  })
})

describe('the opening of the configured models', () => {
  it('D1.3: the address, the key and the model of MODEL and of FALLBACK_MODEL reach their requests', async () => {
    const servers = [await startModelServer(), await startModelServer()]
    const [url, fallbackUrl] = servers.map((server) => server.url)
    const { primary, fallback } = await createModels({
      model: { provider: 'openai-compatible', model: 'm1', baseUrl: url ?? '', apiKey: 'k1' },
      fallback: { provider: 'anthropic', model: 'm2', baseUrl: fallbackUrl ?? '', apiKey: 'k2' },
    })
    for (const route of [primary, fallback]) if (route) await ask(route.provider)
    expect([primary?.model, fallback?.model]).to.deep.equal(['m1', 'm2'])
    const headers = servers.map(({ requests }) => requests[0]?.headers)
    expect([headers[0]?.authorization, headers[1]?.['x-api-key']]).to.deep.equal(['Bearer k1', 'k2'])
    for (const server of servers) await server.close()
  })

  it('D1.4: what is not configured has no route', async () => {
    expect(await createModels({ model: undefined, fallback: undefined })).to.deep.equal({
      primary: undefined,
      fallback: undefined,
    })
  })
})
