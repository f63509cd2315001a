import { expect } from 'chai'
import { createProvider } from '../../../services/wiring/models/create-provider.ts'
import { discoverModels } from '../../../shared/agent/providers/discover.ts'
import type { ProviderType } from '../../../shared/kernel/provider-types.ts'
import { createEgress } from '../../../shared/platform/net/egress.ts'
import { type ModelServer, startModelServer } from '../../support/model-server/model-server.ts'
import { ask, failureOf, textOf } from './ai-sdk/setup.ts'

/** The path of the base URL that a vendor's documentation prints, and the paths at which its models and their list answer. */
const PRINTED: readonly [vendor: string, type: ProviderType, base: string, call: string, list: string][] = [
  ['OpenAI', 'openai', '/v1', '/v1/chat/completions', '/v1/models'],
  ['LiteLLM, LM Studio and vLLM without a path', 'openai-compatible', '', '/v1/chat/completions', '/v1/models'],
  ['LM Studio and vLLM', 'openai-compatible', '/v1/', '/v1/chat/completions', '/v1/models'],
  ['OpenRouter', 'openai-compatible', '/api/v1', '/api/v1/chat/completions', '/api/v1/models'],
  [
    'Gemini by its OpenAI format',
    'openai-compatible',
    '/v1beta/openai/',
    '/v1beta/openai/chat/completions',
    '/v1beta/openai/models',
  ],
  ['GitHub', 'openai-compatible', '/inference', '/inference/chat/completions', '/inference/models'],
  ['a whole address', 'openai-compatible', '/chat/completions', '/chat/completions', '/models'],
  ['a base with a query', 'openai-compatible', '/deploy?api-version=1', '/deploy/chat/completions', '/deploy/models'],
  ['Anthropic', 'anthropic', '', '/v1/messages', '/v1/models'],
  ['Anthropic with the version', 'anthropic', '/v1', '/v1/messages', '/v1/models'],
  ['DeepSeek by its Anthropic format', 'anthropic', '/anthropic', '/anthropic/v1/messages', '/anthropic/v1/models'],
  [
    'a gateway of Cloudflare',
    'anthropic',
    '/v1/acc/gw/anthropic',
    '/v1/acc/gw/anthropic/v1/messages',
    '/v1/acc/gw/anthropic/v1/models',
  ],
  [
    'a base with a query in Anthropic’s format',
    'anthropic',
    '/deploy?api-version=1',
    '/deploy/v1/messages',
    '/deploy/v1/models',
  ],
  ['a whole address of Anthropic’s format', 'anthropic', '/proxy/messages', '/proxy/messages', '/proxy/models'],
  ['Google', 'google', '', '/v1beta/models/test-model:streamGenerateContent', '/v1beta/models'],
  [
    'Google with the version',
    'google',
    '/v1beta/',
    '/v1beta/models/test-model:streamGenerateContent',
    '/v1beta/models',
  ],
  [
    'LiteLLM’s passage to Google',
    'google',
    '/gemini',
    '/gemini/v1beta/models/test-model:streamGenerateContent',
    '/gemini/v1beta/models',
  ],
  ['Ollama', 'ollama', '', '/api/chat', '/v1/models'],
  ['Ollama’s own API', 'ollama', '/api', '/api/chat', '/v1/models'],
  ['Ollama by its OpenAI format', 'ollama', '/v1', '/v1/chat/completions', '/v1/models'],
]

describe('base URLs as vendors print them', () => {
  const egress = createEgress({ allowPrivate: true })
  let server: ModelServer
  let origin: string

  before(async () => {
    server = await startModelServer()
    origin = new URL(server.url).origin
  })
  after(async () => {
    await server.close()
    await egress.close()
  })

  for (const [vendor, type, base, call, list] of PRINTED)
    it(`${vendor} (${type}, ${base || 'a host alone'}): runs and discovery ask below the same address`, async () => {
      const url = `${origin}${base}`
      server.answer('well')
      expect(textOf(await ask(await createProvider({ type, baseUrl: url, apiKey: 'k' })))).to.equal('well')
      const models = await discoverModels(
        { type, url, key: 'k', headers: {} },
        { request: egress.request, signal: new AbortController().signal },
      )
      expect(models.map(({ id }) => id)).to.deep.equal(['test-model'])
      expect(server.requests.slice(-2).map(({ path }) => path)).to.deep.equal([call, list])
    })

  for (const [type, path] of [
    ['openai-compatible', '/v1/chat/completions'],
    ['anthropic', '/v1/messages'],
    ['google', '/v1beta/models/test-model:streamGenerateContent'],
  ] as const)
    it(`a 404 of ${type} names the address that was asked: of an instance host and path, of the server’s own provider the path`, async () => {
      const baseUrl = `${origin}?key=sk-hidden`
      const { host } = new URL(origin)
      server.answer({ status: 404 }, { status: 404 })
      const ofInstance = await failureOf(await createProvider({ type, baseUrl, apiKey: 'k', instance: 'main' }))
      expect(ofInstance.message).to.include(`at ${host}${path} (HTTP 404)`).and.not.include('sk-hidden')
      const ofServer = await failureOf(await createProvider({ type, baseUrl, apiKey: 'k' }))
      expect(ofServer.message).to.include(`at ${path} (HTTP 404)`).and.not.include(host).and.not.include('sk-hidden')
    })

  it('a list that is 404 names the address that was asked, without its query', async () => {
    server.models = { status: 404 }
    const target = { type: 'anthropic', url: `${origin}/anthropic?key=sk-hidden`, key: 'k', headers: {} } as const
    const error = await discoverModels(target, {
      request: egress.request,
      signal: new AbortController().signal,
    }).catch(String)
    expect(error).to.include(`at ${new URL(origin).host}/anthropic/v1/models (HTTP 404)`)
    expect(error).not.to.include('hidden')
  })
})
