import { expect } from 'chai'
import { createProvider } from '../../../services/wiring/models/create-provider.ts'
import type { ModelOptions } from '../../../shared/kernel/model-options.ts'
import { useModelServer } from '../../support/model-server/model-server.ts'
import { ask, DIALECTS, type Dialect, KEY, request, settingsFor, textOf } from './ai-sdk/setup.ts'

const TOOLS = [{ name: 'Read', description: 'Reads a file.', inputSchema: { type: 'object', properties: {} } }]

/** The name of an option in the requests of a dialect; undefined where the dialect has none. */
type Names = Record<Dialect, string | undefined>

const OPTIONS: [options: ModelOptions, names: Names][] = [
  [
    { max_output_tokens: 77 },
    {
      'openai-compatible': 'max_tokens',
      ollama: 'max_tokens',
      'ollama natively': 'num_predict',
      'openai behind a gateway': 'max_completion_tokens',
      openai: 'max_output_tokens',
      anthropic: undefined, // Required by the format.
      google: 'maxOutputTokens',
    },
  ],
  [
    { temperature: 0.3 },
    {
      'openai-compatible': 'temperature',
      ollama: 'temperature',
      'ollama natively': 'temperature',
      'openai behind a gateway': 'temperature',
      openai: 'temperature',
      anthropic: 'temperature',
      google: 'temperature',
    },
  ],
  [
    { reasoning_effort: 'low' },
    {
      'openai-compatible': 'reasoning_effort',
      ollama: 'reasoning_effort',
      'ollama natively': 'think',
      'openai behind a gateway': 'reasoning_effort',
      openai: 'reasoning',
      anthropic: 'thinking',
      google: 'thinkingConfig',
    },
  ],
  [
    { parallel_tool_calls: false },
    {
      'openai-compatible': 'parallel_tool_calls',
      ollama: 'parallel_tool_calls',
      'ollama natively': undefined,
      'openai behind a gateway': 'parallel_tool_calls',
      openai: 'parallel_tool_calls',
      anthropic: 'disable_parallel_tool_use',
      google: undefined,
    },
  ],
]

/** The package for OpenAI knows which models take which option. */
const openAiModel = (option: string) => (option === 'reasoning_effort' ? 'gpt-5.1' : 'gpt-4o')

const MODELS: Partial<Record<Dialect, string>> = {
  anthropic: 'claude-sonnet-4-5',
  google: 'gemini-2.5-pro',
}

const modelFor = (dialect: Dialect, option: string) =>
  dialect === 'openai' ? openAiModel(option) : (MODELS[dialect] ?? 'test-model')

describe('an option that a server does not take', () => {
  let lines: string[]
  const server = useModelServer({ perTest: true })
  beforeEach(async () => {
    lines = []
  })

  const connect = (dialect: Dialect, options: ModelOptions) =>
    createProvider({ apiKey: KEY, ...settingsFor(dialect, server), options, onLeftOut: (line) => lines.push(line) })

  const refuse = (name: string, message: string) =>
    server.otherwise(({ body }) => (JSON.stringify(body).includes(`"${name}"`) ? { status: 400, message } : 'ok'))

  for (const dialect of DIALECTS) {
    for (const [options, names] of OPTIONS) {
      const [option = ''] = Object.keys(options)
      const { [dialect]: name } = names
      if (name === undefined) continue
      it(`D1.3 MODEL_OPTIONS: ${option} is left out of the requests over ${dialect}, with one log line`, async () => {
        refuse(name, `Unsupported parameter: '${name}' is not supported with this model.`)
        const provider = await connect(dialect, options)
        const asked = request({ model: modelFor(dialect, option), tools: TOOLS })
        for (let turn = 1; turn <= 2; turn++) {
          expect(textOf(await ask(provider, asked))).to.equal('ok')
          expect(server.requests).to.have.length(1 + turn)
        }
        expect(lines).to.have.length(1)
        expect(lines[0])
          .to.include(asked.model)
          .and.match(/left out/)
      })
    }
  }

  it('a refusal of something else is passed on, also with options that no server refuses by name', async () => {
    for (const dialect of DIALECTS) {
      server.otherwise(() => ({ status: 400, message: 'no such model' }))
      const provider = await connect(dialect, { headers: { 'x-team': 'a' }, timeout_secs: 30 })
      const parts = await ask(provider, request({ model: modelFor(dialect, '') }))
      expect(parts.at(-1), dialect).to.have.nested.property('failure.code', 'provider_rejected')
    }
  })

  it('is left out for the model that refused it only', async () => {
    const provider = await connect('openai-compatible', { temperature: 0.3 })
    server.answer({ status: 400, message: 'temperature does not support 0.3 with this model.' }, 'ok', 'ok')
    await ask(provider)
    await ask(provider, request({ model: 'other' }))
    expect(server.requests.map(({ body }) => 'temperature' in body)).to.deep.equal([true, false, true])
  })

  it('max_tokens becomes max_completion_tokens where the server says so', async () => {
    refuse('max_tokens', "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    const provider = await connect('openai-compatible', { max_output_tokens: 77 })
    expect(textOf(await ask(provider))).to.equal('ok')
    expect(server.requests[1]?.body).to.include({ max_completion_tokens: 77 })
  })

  it('stream_options is left out where the server does not know it', async () => {
    refuse('stream_options', 'Extra inputs are not permitted: stream_options')
    expect(textOf(await ask(await connect('openai-compatible', {})))).to.equal('ok')
  })

  it('does not hide a refusal of something else', async () => {
    server.otherwise(() => ({ status: 400, message: 'messages: too many images' }))
    const parts = await ask(await connect('openai-compatible', { temperature: 0.3 }))
    expect(parts.at(-1)).to.have.nested.property('failure.code', 'provider_rejected')
    expect(server.requests).to.have.length(1)
  })

  it('is logged when this server leaves it out by itself', async () => {
    const asked = request({ model: 'o4-mini' })
    await ask(await connect('openai behind a gateway', { temperature: 0.3 }), asked)
    await ask(await connect('openai', { temperature: 0.3 }), asked)
    expect(lines).to.have.length(2)
    expect(lines.join()).to.match(/temperature.*temperature/)
  })
})
