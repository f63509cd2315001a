import { expect } from 'chai'
import { createProvider } from '../../../../services/wiring/models/create-provider.ts'
import type { Failure, ModelProvider } from '../../../../shared/agent/providers/port.ts'
import { invalidRequest } from '../../../../shared/kernel/errors.ts'
import { type Answer, useModelServer } from '../../../support/model-server/model-server.ts'
import { ask, connect, DIALECTS, failureOf, KEY, partsOf, request, textOf } from './setup.ts'

type Row = [what: string, answer: Answer, expected: Partial<Failure>]

const PASSING = { isRetryable: true, isFailover: true }
const FINAL = { isRetryable: false, isFailover: false }

const REFUSALS: Row[] = [
  ['401', { status: 401 }, { code: 'provider_auth', reason: 'http_401', ...FINAL }],
  ['403', { status: 403 }, { code: 'provider_auth', reason: 'http_403', ...FINAL }],
  [
    'D5.5: 402',
    { status: 402 },
    { code: 'provider_rejected', reason: 'out_of_credit', isRetryable: false, isFailover: true },
  ],
  ['404', { status: 404 }, { code: 'provider_rejected', reason: 'http_404', ...FINAL }],
  ['422', { status: 422 }, { code: 'provider_rejected', reason: 'http_422', ...FINAL }],
  ['408', { status: 408 }, { code: 'provider_unavailable', reason: 'http_408', ...PASSING }],
  ['409', { status: 409 }, { code: 'provider_unavailable', reason: 'http_409', ...PASSING }],
  ['413', { status: 413 }, { code: 'context_too_long', ...FINAL }],
  ['429', { status: 429 }, { code: 'provider_rate_limited', reason: 'http_429', ...PASSING }],
  ['429 and seconds', { status: 429, retryAfter: 7 }, { code: 'provider_rate_limited', retryAfterMs: 7_000 }],
  ['503 and seconds', { status: 503, retryAfter: 2 }, { code: 'provider_unavailable', retryAfterMs: 2_000 }],
  ['429 and milliseconds', { status: 429, headers: { 'retry-after-ms': '250' }, retryAfter: 1 }, { retryAfterMs: 250 }],
  ['500', { status: 500 }, { code: 'provider_unavailable', reason: 'http_500', ...PASSING }],
  ['529', { status: 529 }, { code: 'provider_unavailable', reason: 'http_529', ...PASSING }],
  [
    'a page instead of an error body',
    { status: 502, body: '<h1>Bad Gateway</h1>' },
    { reason: 'http_502', ...PASSING },
  ],
  [
    'a redirect',
    { status: 302, headers: { location: 'http://127.0.0.1:1/' } },
    { code: 'provider_rejected', ...FINAL },
  ],
  ['an input that is too long', { contextTooLong: true }, { code: 'context_too_long', ...FINAL }],
  [
    'a reset before the answer',
    { resetBeforeHeaders: true },
    { code: 'provider_unavailable', reason: 'connection_reset', ...PASSING },
  ],
]

/** Failures after text was streamed. */
const BREAKS: Row[] = [
  ['a reset', [{ text: 'so far' }, { reset: true }], { code: 'provider_unavailable', reason: 'connection_reset' }],
  [
    'a truncated stream',
    [{ text: 'so far' }, { truncate: true }],
    { code: 'provider_unavailable', reason: 'truncated' },
  ],
  [
    'a chunk that is no JSON',
    [{ text: 'so far' }, { raw: 'data: {"broken\n\n' }, { text: 'x' }],
    { reason: 'bad_chunk' },
  ],
  ['an overload', [{ text: 'so far' }, { error: { status: 529 } }], { code: 'provider_unavailable' }],
  ['a filter', { steps: [{ text: 'so far' }], finish: 'content_filter' }, { code: 'content_filtered', ...FINAL }],
]

for (const dialect of DIALECTS) {
  describe(`a failure over ${dialect}`, () => {
    let provider: ModelProvider

    const server = useModelServer({ perTest: true })
    beforeEach(async () => {
      provider = await connect(dialect, server)
    })

    for (const [what, answer, expected] of REFUSALS) {
      it(`D4.8: ${what} is ${expected.code ?? JSON.stringify(expected)}`, async () => {
        server.answer(answer)
        const failure = await failureOf(provider)
        expect(failure).to.include(expected)
        expect(failure.message).not.to.match(/sk-|http:|127\.0/)
        expect(server.requests).to.have.length(1)
      })
    }

    for (const [what, answer, expected] of BREAKS) {
      it(`${what} after text ends the turn with ${expected.code ?? expected.reason}`, async () => {
        if (dialect === 'ollama natively' && expected.code === 'content_filtered') return // It has no filter.
        server.answer(answer)
        const parts = await ask(provider)
        expect(textOf(parts)).to.equal('so far')
        const [only, ...others] = partsOf(parts, 'failure')
        expect(only?.failure).to.include(expected)
        expect(others).to.be.empty
        expect(parts.at(-1)).to.have.property('type', 'failure')
      })
    }

    it('a failed turn closes its request', async () => {
      server.answer([{ text: 'so far' }, { raw: 'data: {"broken\n\n' }, { hang: true }])
      const asked = server.nextRequest()
      await failureOf(provider)
      await (await asked).closedByClient
    })

    it('the request after a 500 is served', async () => {
      server.answer({ status: 500 }, 'well')
      await failureOf(provider)
      expect(textOf(await ask(provider))).to.equal('well')
    })
  })
}

describe('a failure', () => {
  const server = useModelServer({ perTest: true })

  const fail = async (answer: Answer, dialect: Parameters<typeof connect>[0] = 'openai-compatible') => {
    server.answer(answer)
    return failureOf(await connect(dialect, server))
  }

  it('D4.8: the message of a rejected request quotes the provider without anything private', async () => {
    const message = `Unsupported value "x" for key ${KEY} (org-4f8Ah2) at https://gw.corp.internal:8443/v1, 10.1.2.3:99; ask ops@corp.example`
    const failure = await fail({ status: 400, message })
    expect(failure.message).to.include('rejected the request (HTTP 400). It says: Unsupported value "x" for key')
    expect(failure.message).not.to.match(/0123456789|org-4f|gw\.corp|10\.1|ops@/)
    expect((await fail({ status: 400, message: 'long '.repeat(400) })).message.length).to.be.below(400)
  })

  it('the message names an unknown model, and the variable of a refused key', async () => {
    expect((await fail({ status: 404 })).message).to.include('does not know the model test-model')
    expect((await fail({ status: 401 }, 'anthropic')).message).to.include('ANTHROPIC_API_KEY')
  })

  it('a 429 with insufficient_quota, as OpenAI sends it, means out of credit', async () => {
    const failure = await fail({ status: 429, code: 'insufficient_quota' }, 'openai')
    expect(failure).to.include({ reason: 'out_of_credit', isRetryable: false, isFailover: true })
  })

  it('a 400 about a low balance, as Anthropic sends it, means out of credit', async () => {
    const failure = await fail(
      { status: 400, message: 'Your credit balance is too low to access the Anthropic API.' },
      'anthropic',
    )
    expect(failure).to.include({ reason: 'out_of_credit', isFailover: true })
  })

  it('a 400 with API_KEY_INVALID, as Google sends it, means a refused key', async () => {
    const error = {
      code: 400,
      message: 'API key not valid.',
      status: 'INVALID_ARGUMENT',
      details: [{ reason: 'API_KEY_INVALID' }],
    }
    expect(await fail({ status: 400, body: { error } }, 'google')).to.include({ code: 'provider_auth' })
  })

  it('a tool call that Google reports as malformed is retryable', async () => {
    const failure = await fail([{ tool: 'Read', input: '{"path": ' }], 'google')
    expect(failure).to.include({ code: 'provider_unavailable', reason: 'malformed_function_call', ...PASSING })
  })

  it("Google's RetryInfo is used when there is no Retry-After", async () => {
    const error = { code: 429, message: 'Wait.', status: 'RESOURCE_EXHAUSTED', details: [{ retryDelay: '3.5s' }] }
    expect(await fail({ status: 429, body: { error } }, 'google')).to.include({ retryAfterMs: 3_500 })
  })

  it('Retry-After may be a date', async () => {
    const failure = await fail({ status: 429, retryAfter: new Date(Date.now() + 10_000).toUTCString() })
    expect(failure.retryAfterMs).to.be.within(5_000, 10_000)
  })

  const TOO_LONG = [
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
    'the request exceeds the available context size, try increasing it',
    'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000',
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    'Prompt contains 40000 tokens, too large for model with 32768 maximum context length',
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    'The decoder prompt (length 5000) is longer than the maximum model length of 4096.',
    'The input (5000 tokens) is longer than the model’s context length (4096 tokens).',
    'Invalid request: Your request exceeded model token limit: 8192',
    'Range of input length should be [1, 30720]',
    'Prompt exceeds max length',
    'too many tokens: total number of tokens in the prompt cannot exceed 4081',
  ]
  for (const message of TOO_LONG) {
    it(`D5.6: "${message.slice(0, 40)}…" is context_too_long`, async () => {
      expect(await fail({ status: 400, message })).to.include({ code: 'context_too_long' })
    })
  }

  it('D5.6: a rate limit that counts tokens is not context_too_long', async () => {
    const message = 'Too many tokens per minute, please wait before trying again.'
    expect(await fail({ status: 429, message })).to.include({ code: 'provider_rate_limited' })
  })

  it("D5.6: OpenAI's codes mean context_too_long whatever the message", async () => {
    for (const code of ['context_length_exceeded', 'string_above_max_length']) {
      expect(await fail({ status: 400, code, message: 'no' })).to.include({ code: 'context_too_long' })
    }
  })

  it('an error that is a plain string in the stream fails the turn', async () => {
    expect(await fail([{ raw: 'data: {"error":"model runner has crashed"}\n\n' }])).to.include({
      code: 'provider_unavailable',
    })
  })

  it('a web page instead of a stream is a failure that points at the address', async () => {
    const failure = await fail({ status: 200, body: '<html></html>', headers: { 'content-type': 'text/html' } })
    expect(failure).to.include({ code: 'provider_rejected', reason: 'web_page', ...FINAL })
  })

  it('D1.3 MODEL_API_KEY: the message of a missing key names the variable to set, and no request is made', async () => {
    for (const type of ['openai', 'anthropic', 'google'] as const) {
      const failure = await failureOf(await createProvider({ type }))
      expect(failure).to.include({ code: 'provider_auth', reason: 'missing_api_key', ...FINAL })
      expect(failure.message).to.match(/MODEL_API_KEY or [A-Z_]+_API_KEY$/)
    }
  })

  it('a key that is no header value is refused, and no message contains it', async () => {
    const provider = await createProvider({ type: 'openai-compatible', baseUrl: server.url, apiKey: 'sk-1\nsk-2' })
    const failure = await failureOf(provider)
    expect(failure).to.include({ code: 'provider_auth', reason: 'malformed_api_key' })
    expect(JSON.stringify(failure)).not.to.include('sk-')
  })

  it('a refused connection and an unknown host are provider_unavailable', async () => {
    const baseUrl = server.url
    await server.close()
    const refused = await failureOf(await createProvider({ type: 'ollama', baseUrl }))
    expect(refused).to.include({ code: 'provider_unavailable', reason: 'connection_refused', ...PASSING })
    const unknown = await failureOf(await createProvider({ type: 'ollama', baseUrl: 'http://model.invalid/v1' }))
    expect(unknown).to.include({ code: 'provider_unavailable', reason: 'dns_error', ...PASSING })
    expect(unknown.message).not.to.include('model.invalid')
  })

  it('a refusal of the egress guard keeps its message', async () => {
    const refusal = invalidRequest('This address may not be reached.')
    const provider = await createProvider({ type: 'ollama', send: () => Promise.reject(refusal) })
    const failure = await failureOf(provider, request())
    expect(failure).to.include({ code: 'provider_rejected', message: 'This address may not be reached.', ...FINAL })
  })

  it('a rejected certificate is not retryable', async () => {
    const cause = Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
    const provider = await createProvider({
      type: 'ollama',
      send: () => Promise.reject(new TypeError('fetch failed', { cause })),
    })
    expect(await failureOf(provider)).to.include({ reason: 'tls_error', isRetryable: false, isFailover: true })
  })
})
