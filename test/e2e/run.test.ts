import { expect } from 'chai'
import { useModelServer } from '../support/model-server/model-server.ts'
import { inBothForms, inStandaloneForm, type Product, useProduct } from '../support/product.ts'

inBothForms('POST /agent/run', (startProduct, form) => {
  const product = useProduct(startProduct)

  const framesOf = async (body: unknown) => (await product.run(body)).all()

  it('api.md Events 1: a normal run is turn_start, its text, turn_end, done', async () => {
    product.model.answer({ steps: [{ text: ['Hel', 'lo'] }], usage: { input: 10, output: 2 } })
    const stream = await product.run({ prompt: 'hi' })
    expect(stream.response.headers.get('content-type')).to.match(/^text\/event-stream/)
    expect(stream.runId).to.match(/^run_[0-9a-f]{32}$/)
    expect((await stream.all()).map(({ id, event, data }) => ({ id, event, ...data }))).to.deep.equal([
      { id: 1, event: 'turn_start', turn_number: 1, model: 'test-model' },
      { id: 2, event: 'text_delta', text: 'Hel' },
      { id: 3, event: 'text_delta', text: 'lo' },
      { id: 4, event: 'text', text: 'Hello' },
      { id: 5, event: 'turn_end', turn_number: 1, input_tokens: 10, output_tokens: 2, cost_usd: 0.00003 },
      {
        id: 6,
        event: 'done',
        total_input_tokens: 10,
        total_output_tokens: 2,
        total_tokens: 12,
        cost_usd: 0.00003,
        turn_count: 1,
        stop_reason: 'end_turn',
      },
    ])
    expect(stream.comments[0]).to.equal('ok')
  })

  it('D31.1: without DIALECTS the standalone form speaks all of them, and the cluster none', async () => {
    const statuses = ['/ui/chat', '/openai/v1/responses', '/ag-ui'].map(async (path) => {
      const response = await fetch(product.url + path, { method: 'POST' })
      return response.status
    })
    // Where the path exists, the empty body is refused with 400.
    const wanted = form === 'standalone' ? 400 : 404
    expect(await Promise.all(statuses)).to.deep.equal([wanted, wanted, wanted])
  })

  it('api.md RunRequest: model and system_prompt reach the model, and stop_sequences only one that can tell which it found', async () => {
    product.model.answer('ok')
    await framesOf({ prompt: 'hi', model: 'other-model', system_prompt: 'be brief', stop_sequences: ['END'] })
    const { body } = product.model.requests.at(-1) ?? {}
    expect(body).to.include({ model: 'other-model' }).and.not.have.property('stop')
    expect(body?.['messages']).to.deep.equal([
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'hi' },
    ])
  })

  it('D4.10: cache tokens are reported and priced separately; a model without a price causes one warning', async () => {
    product.model.answer({ steps: [{ text: 'ok' }], usage: { input: 1000, cacheRead: 800, output: 10 } })
    const priced = await framesOf({ prompt: 'hi' })
    expect(priced.at(-1)?.data).to.include({ total_input_tokens: 1000, cache_read_tokens: 800 })
    expect(priced.at(-1)?.data['cost_usd']).to.be.closeTo((200 * 1 + 800 * 0.1 + 10 * 10) / 1e6, 1e-12)
    product.model.answer({ steps: [{ text: 'ok' }], usage: { input: 1000, cacheRead: 800, output: 10 } })
    const { body } = await product.call('POST', '/agent/run', { prompt: 'hi' }, { accept: 'application/json' })
    expect(body).to.have.nested.property('usage.cache_read_tokens', 800)
    product.model.answer([{ tool: 'Glob', input: { pattern: '*' } }], 'ok')
    const unpriced = await framesOf({ prompt: 'hi', model: 'nobody-knows-me' })
    expect(unpriced.filter(({ data }) => data['code'] === 'price_unknown')).to.have.length(1)
    expect(unpriced.at(-1)?.data).to.include({ cost_usd: 0 })
  })

  const failures: [string, Parameters<Product['model']['answer']>, Record<string, unknown>][] = [
    ['a wrong key', [{ status: 401 }], { code: 'provider_auth', retryable: false }],
    ['a request the provider refuses', [{ status: 400 }], { code: 'provider_rejected', retryable: false }],
    ['an unknown model', [{ status: 404 }], { code: 'provider_rejected', retryable: false }],
    ['a context that is too long', [{ contextTooLong: true }], { code: 'context_too_long', retryable: false }],
    ['a reset after text', [[{ text: 'half' }, { reset: true }]], { code: 'provider_unavailable', retryable: true }],
    [
      'a stream that is cut short',
      [[{ text: 'half' }, { truncate: true }]],
      { code: 'provider_unavailable', retryable: true },
    ],
    [
      'a filtered answer',
      [{ steps: [{ text: 'x' }], finish: 'content_filter' }],
      { code: 'content_filtered', retryable: false },
    ],
  ]
  for (const [what, answers, expected] of failures) {
    it(`D4.8: ${what} is error ${expected['code']}, with a suggestion`, async () => {
      const before = product.model.requests.length
      product.model.answer(...answers)
      const last = (await framesOf({ prompt: 'hi' })).at(-1)
      expect(last?.event).to.equal('error')
      expect(last?.data).to.include(expected)
      expect(last?.data['suggestion']).to.be.a('string').that.is.not.empty
      expect(JSON.stringify(last?.data)).not.to.include('127.0.0.1')
      expect(product.model.requests).to.have.length(before + 1)
    })
  }

  it('D5.5: a failure before the first event is retried with the warning transport_retrying', async () => {
    product.model.answer({ status: 503 }, { status: 429, retryAfter: 0 }, 'at last')
    const frames = await framesOf({ prompt: 'hi' })
    const warnings = frames.filter(({ event }) => event === 'warning').map(({ data }) => data)
    expect(warnings.map(({ code }) => code)).to.deep.equal(['transport_retrying', 'transport_retrying'])
    expect(warnings[0]).to.include.keys('category', 'reason', 'detail', 'message')
    expect(warnings[0]?.['detail']).to.include.keys('attempt', 'category', 'reason', 'delay_ms')
    expect(frames.at(-1)?.event).to.equal('done')
  })
})

inStandaloneForm('POST /agent/run with a fallback model', (startProduct) => {
  const spare = useModelServer()
  const product = useProduct(() =>
    startProduct({
      FALLBACK_MODEL: 'spare-model',
      FALLBACK_MODEL_PROVIDER: 'openai-compatible',
      FALLBACK_MODEL_BASE_URL: spare.url,
      MODEL_PRICES: '{"test-model":{"input":1,"output":1},"spare-model":{"input":5,"output":1}}',
    }),
  )

  it('api.md Events 4: when the provider stays unavailable the fallback serves the turn, with the warning provider_failover', async () => {
    product.model.answer({ status: 500 }, { status: 500 }, { status: 500 })
    spare.answer({ steps: [{ text: 'from the spare' }], usage: { input: 1000, output: 0 } })
    const frames = await (await product.run({ prompt: 'hi' })).all()
    expect(frames.filter(({ event }) => event === 'warning').map(({ data }) => data['code'])).to.deep.equal([
      'transport_retrying',
      'transport_retrying',
      'provider_failover',
    ])
    expect(frames.find(({ event }) => event === 'text')?.data).to.deep.equal({ text: 'from the spare' })
    expect(spare.requests.at(-1)?.model).to.equal('spare-model')
    expect(frames.at(-1)?.data).to.include({ cost_usd: 0.005 })
  })

  it('D5.5: the fallback does not repeat a turn of which text has been streamed', async () => {
    const before = spare.requests.length
    product.model.answer([{ text: 'half' }, { reset: true }])
    const frames = await (await product.run({ prompt: 'hi' })).all()
    expect(frames.at(-1)?.data).to.include({ code: 'provider_unavailable' })
    expect(spare.requests).to.have.length(before)
  })
})
