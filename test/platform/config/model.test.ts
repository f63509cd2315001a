import { expect } from 'chai'
import { cluster, type Env, problems, standalone } from './load.ts'

describe('config: the model', () => {
  it('D1.4: without configuration there is the demo in the standalone form and no model in the cluster form, each with a warning', () => {
    expect(standalone().model).to.deep.equal({ provider: 'demo', model: 'demo' })
    expect(standalone().warnings.join()).to.include('the built-in demo answers')
    expect(cluster().model).to.equal(undefined)
    expect(cluster().warnings.join()).to.include('no model is configured')
  })

  it('D1.3: `demo` does not need MODEL, and accepts it', () => {
    expect(cluster({ MODEL_PROVIDER: 'demo', HOST: '127.0.0.1' })).to.deep.include({
      model: { provider: 'demo', model: 'demo' },
      warnings: [],
    })
    expect(standalone({ MODEL_PROVIDER: 'demo', MODEL: 'x' }).model).to.deep.equal({ provider: 'demo', model: 'x' })
  })

  it('D1.3: MODEL_API_KEY counts before the usual variable of the provider', () => {
    const env = { MODEL: 'm', MODEL_PROVIDER: 'openai', OPENAI_API_KEY: 'usual' }
    expect(standalone(env).model?.apiKey).to.equal('usual')
    expect(standalone({ ...env, MODEL_API_KEY: 'own' }).model?.apiKey).to.equal('own')
  })

  for (const [provider, name] of [
    ['anthropic', 'ANTHROPIC_API_KEY'],
    ['google', 'GOOGLE_GENERATIVE_AI_API_KEY'],
    ['google', 'GEMINI_API_KEY'],
    ['google', 'GOOGLE_API_KEY'],
    ['ollama', 'OLLAMA_API_KEY'],
  ] as const) {
    it(`D1.3 MODEL_API_KEY: the key of ${provider} is read from ${name}`, () => {
      expect(standalone({ MODEL: 'm', MODEL_PROVIDER: provider, [name]: 'k' }).model?.apiKey).to.equal('k')
    })
  }

  it('D1.3 MODEL_API_KEY: of several usual variables the first that is not empty counts', () => {
    const env = { MODEL: 'm', MODEL_PROVIDER: 'google', GEMINI_API_KEY: 'second', GOOGLE_API_KEY: 'third' }
    expect(standalone(env).model?.apiKey).to.equal('second')
    expect(standalone({ ...env, GOOGLE_GENERATIVE_AI_API_KEY: 'first' }).model?.apiKey).to.equal('first')
    expect(standalone({ ...env, GOOGLE_GENERATIVE_AI_API_KEY: '' }).model?.apiKey).to.equal('second')
  })

  it('a key of OpenAI is not sent to an openai-compatible address', () => {
    const env = { MODEL: 'm', MODEL_PROVIDER: 'openai-compatible', MODEL_BASE_URL: 'http://x/v1', OPENAI_API_KEY: 'k' }
    expect(standalone(env).model).to.deep.equal({ provider: 'openai-compatible', model: 'm', baseUrl: 'http://x/v1' })
  })

  it('a missing key is a warning where the provider requires one, and no error', () => {
    expect(standalone({ MODEL: 'm', MODEL_PROVIDER: 'openai' }).warnings).to.deep.equal([
      'MODEL_PROVIDER=openai has no key: set MODEL_API_KEY or OPENAI_API_KEY',
    ])
    expect(standalone({ MODEL: 'm', MODEL_PROVIDER: 'openai', MODEL_BASE_URL: 'http://x' }).warnings).to.deep.equal([])
    expect(standalone({ MODEL: 'm', MODEL_PROVIDER: 'ollama' }).warnings).to.deep.equal([])
  })

  it('D1.3: the variables of FALLBACK_MODEL are read as those of MODEL are', () => {
    const env = { FALLBACK_MODEL: 'f', FALLBACK_MODEL_PROVIDER: 'anthropic', FALLBACK_MODEL_API_KEY: 'k' }
    expect(standalone(env).fallback).to.deep.equal({ provider: 'anthropic', model: 'f', apiKey: 'k' })
  })

  const pairs: [Env, string[]][] = [
    [{ MODEL: 'm' }, ['MODEL_PROVIDER is not set, but MODEL: ']],
    [
      { MODEL_BASE_URL: 'http://x', MODEL_API_KEY: 'k' },
      ['MODEL_PROVIDER is not set, but MODEL_BASE_URL and MODEL_API_KEY: '],
    ],
    [{ MODEL_PROVIDER: 'openai' }, ['MODEL is not set, but MODEL_PROVIDER=openai: ']],
    [{ MODEL: 'm', MODEL_PROVIDER: 'openai-compatible' }, ['MODEL_BASE_URL is not set']],
    [{ MODEL: 'm', MODEL_PROVIDER: 'openai-compatible', MODEL_BASE_URL: 'x' }, ['MODEL_BASE_URL holds "x": ']],
    [{ FALLBACK_MODEL: 'm' }, ['FALLBACK_MODEL_PROVIDER is not set, but FALLBACK_MODEL: ']],
    [{ FALLBACK_MODEL_PROVIDER: 'google' }, ['FALLBACK_MODEL is not set, but FALLBACK_MODEL_PROVIDER=google: ']],
    [{ MODEL: 'm', MODEL_PROVIDER: 'gpt' }, ['MODEL_PROVIDER holds "gpt": wanted one of openai, ']],
  ]
  for (const [env, wanted] of pairs) {
    it(`D1.3b: ${JSON.stringify(env)} lacks a variable and stops the start`, () => {
      const found = problems(env)
      expect(found).to.have.length(wanted.length)
      for (const [index, start] of wanted.entries())
        expect(found[index]?.startsWith(start), found[index]).to.equal(true)
    })
  }
})
