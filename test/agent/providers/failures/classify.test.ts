import { expect } from 'chai'
import { classifyFailure, connectionFailure } from '../../../../shared/agent/providers/failures/classify.ts'
import {
  abortedAnswer,
  breachFailure,
  type FailedCall,
  failure,
  keyFailure,
} from '../../../../shared/agent/providers/failures/failures.ts'
import { MODEL_LIMITS } from '../../../../shared/agent/providers/limits.ts'
import type { Failure } from '../../../../shared/agent/providers/port.ts'
import { AppError, invalidRequest } from '../../../../shared/kernel/errors.ts'
import { PROVIDER_NAMES, PROVIDER_TYPES } from '../../../../shared/kernel/provider-types.ts'

const CALL: FailedCall = { type: 'openai', model: 'gpt', instance: undefined, apiKey: 'the-key' }

const FINAL = { isRetryable: false, isFailover: false }
const RETRYABLE = { isRetryable: true, isFailover: true }
const FAILOVER = { isRetryable: false, isFailover: true }

const LONG = 'prompt is too long'

type Row = [rule: string, error: unknown, expected: Partial<Failure>]

const status = (statusCode: number, error: object | string = {}, responseHeaders = {}) => ({
  statusCode,
  responseHeaders,
  responseBody: JSON.stringify({ error }),
})

const STATUSES: Row[] = [
  [
    '300',
    status(300),
    {
      code: 'provider_rejected',
      reason: 'http_300',
      message: 'openai redirected the request (HTTP 300), which is not followed: check MODEL_BASE_URL',
      ...FINAL,
    },
  ],
  [
    '399',
    status(399),
    { message: 'openai redirected the request (HTTP 399), which is not followed: check MODEL_BASE_URL' },
  ],
  ['400', status(400), { code: 'provider_rejected', message: 'openai rejected the request (HTTP 400)', ...FINAL }],
  [
    '401',
    status(401),
    {
      code: 'provider_auth',
      reason: 'http_401',
      message: 'openai refused the API key (HTTP 401): check MODEL_API_KEY or OPENAI_API_KEY',
      ...FINAL,
    },
  ],
  [
    '402',
    status(402),
    {
      code: 'provider_rejected',
      reason: 'out_of_credit',
      message: 'the account at openai is out of credit (HTTP 402): add credit there, or use another key',
      ...FAILOVER,
    },
  ],
  [
    '403',
    status(403),
    {
      code: 'provider_auth',
      reason: 'http_403',
      message: 'openai denied access to gpt (HTTP 403): check what the key in MODEL_API_KEY or OPENAI_API_KEY may use',
    },
  ],
  [
    '404',
    status(404),
    { message: 'openai does not know the model gpt (HTTP 404): check MODEL and MODEL_BASE_URL', ...FINAL },
  ],
  ['407', status(407), { code: 'provider_rejected', ...FINAL }],
  ['408', status(408), { code: 'provider_unavailable', reason: 'http_408', ...RETRYABLE }],
  ['409', status(409), { code: 'provider_unavailable', ...RETRYABLE }],
  ['410', status(410), { code: 'provider_rejected', ...FINAL }],
  ['413', status(413), { code: 'context_too_long', message: 'the conversation is too long for gpt', ...FINAL }],
  [
    '429',
    status(429),
    {
      code: 'provider_rate_limited',
      reason: 'http_429',
      message: 'openai limits the rate of requests (HTTP 429): wait, or raise the limit there',
      ...RETRYABLE,
    },
  ],
  ['499', status(499), { code: 'provider_rejected', ...FINAL }],
  [
    '500',
    status(500),
    { code: 'provider_unavailable', message: 'openai failed (HTTP 500): try again later', ...RETRYABLE },
  ],
]

const TEXTS: Row[] = [
  ['a 400 with the text of a full context', status(400, { message: LONG }), { code: 'context_too_long' }],
  ['a 422 with the text of a full context', status(422, { message: LONG }), { code: 'context_too_long' }],
  ['a 500 with the text of a full context', status(500, { message: LONG }), { code: 'context_too_long' }],
  ['an event with the text of a full context', { error: { message: LONG } }, { code: 'context_too_long' }],
  ['a 401 with the text of a full context', status(401, { message: LONG }), { code: 'provider_auth' }],
  ['a 403 with the text of a full context', status(403, { message: LONG }), { code: 'provider_auth' }],
  ['a 404 with the text of a full context', status(404, { message: LONG }), { code: 'provider_rejected' }],
  ['a 429 with the text of a full context', status(429, { message: LONG }), { code: 'provider_rate_limited' }],
  [
    'a 400 with the code of a full context',
    status(400, { code: 'exceed_context_size_error' }),
    { code: 'context_too_long' },
  ],
  [
    'a 400 with the text of an empty account',
    status(400, { message: 'Insufficient balance' }),
    { reason: 'out_of_credit' },
  ],
  [
    'a 499 with the text of an empty account',
    status(499, { message: 'Insufficient funds' }),
    { reason: 'out_of_credit' },
  ],
  ['a 500 with the text of an empty account', status(500, { message: 'Insufficient funds' }), { reason: 'http_500' }],
  [
    'an event with the text of an empty account',
    { error: { message: 'Insufficient funds' } },
    { reason: 'stream_error' },
  ],
  [
    'an event with the code of an empty account',
    { error: { type: 'insufficient_quota' } },
    { reason: 'out_of_credit' },
  ],
  ['an event with the code of a wrong key', { error: { code: 'invalid_api_key' } }, { reason: 'http_401' }],
  [
    'a 400 with the code of a wrong key',
    status(400, { code: 'api_key_invalid' }),
    { code: 'provider_auth', reason: 'http_400' },
  ],
  [
    'a 400 with the code of a content filter',
    status(400, { code: 'content_filter' }),
    { code: 'content_filtered', ...FINAL },
  ],
  [
    'a 400 with the code of a content policy',
    status(400, { code: 'content_policy_violation' }),
    { code: 'content_filtered' },
  ],
  [
    'a 400 with the code ResponsibleAIPolicyViolation',
    status(400, { code: 'ResponsibleAIPolicyViolation' }),
    { code: 'content_filtered' },
  ],
  [
    'an event with a text only',
    { error: 'crashed' },
    { code: 'provider_unavailable', reason: 'stream_error', message: 'openai failed within its answer', ...RETRYABLE },
  ],
]

describe('the classification of a failed model call', () => {
  for (const [rule, error, expected] of [...STATUSES, ...TEXTS]) {
    it(`D4.8: ${rule} is ${expected.reason ?? expected.code ?? expected.message}`, () => {
      expect(classifyFailure(error, CALL)).to.include(expected)
    })
  }

  it('an error that holds neither status nor code nor text is not classified', () => {
    for (const error of [new Error('internal'), {}, undefined, { error: {} }, { statusCode: 200 }]) {
      expect(classifyFailure(error, CALL)).to.equal(undefined)
    }
  })

  it('Retry-After is kept for 429 and 5xx, and dropped for a rejected request', () => {
    const waitOf = (code: number) => classifyFailure(status(code, {}, { 'retry-after': '2' }), CALL)?.retryAfterMs
    expect([429, 503, 408, 400].map(waitOf)).to.deep.equal([2_000, 2_000, 2_000, undefined])
    expect(classifyFailure(status(429), CALL)).not.to.have.property('retryAfterMs')
  })

  it("the provider's text is quoted for 400, 404 and 422 only, without the key", () => {
    const messageOf = (code: number) => classifyFailure(status(code, { message: 'no the-key here' }), CALL)?.message
    for (const code of [400, 404, 422]) expect(messageOf(code)).to.match(/\. It says: no … here$/)
    for (const code of [302, 401, 405, 429, 500]) expect(messageOf(code)).not.to.include('It says')
  })

  it('a refusal of this service counts before everything else, wherever the chain of causes holds it', () => {
    const wrap = (error: Error, depth: number): Error =>
      depth === 0 ? error : wrap(new Error('x', { cause: error }), depth - 1)
    const refusal = invalidRequest('Not this address.', { code: 'egress_refused' })
    const refused = { code: 'provider_rejected', reason: 'refused', message: 'Not this address.', ...FINAL }
    expect(classifyFailure(refusal, CALL)).to.include(refused)
    expect(classifyFailure(wrap(refusal, 5), CALL)).to.include(refused)
    expect(classifyFailure(wrap(refusal, 6), CALL)).to.equal(undefined)
    const upstream = new AppError('upstream', 'down', { cause: Object.assign(new Error(), { code: 'ECONNRESET' }) })
    expect(classifyFailure(upstream, CALL)).not.to.include({ reason: 'refused' })
  })

  const NETWORK: [code: string, expected: Partial<Failure>][] = [
    ['UND_ERR_CONNECT_TIMEOUT', { code: 'timeout', reason: 'connect_timeout', ...RETRYABLE }],
    ['UND_ERR_HEADERS_TIMEOUT', { reason: 'connect_timeout' }],
    ['UND_ERR_BODY_TIMEOUT', { reason: 'connect_timeout' }],
    [
      'ETIMEDOUT',
      { reason: 'connect_timeout', message: 'openai did not accept a connection in time: check MODEL_BASE_URL' },
    ],
    [
      'CERT_HAS_EXPIRED',
      { reason: 'tls_error', message: 'the certificate of openai was not accepted: check MODEL_BASE_URL', ...FAILOVER },
    ],
    ['ERR_TLS_CERT_ALTNAME_INVALID', { reason: 'tls_error' }],
    ['ERR_SSL_WRONG_VERSION_NUMBER', { reason: 'tls_error' }],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', { reason: 'tls_error' }],
    [
      'ECONNREFUSED',
      {
        reason: 'connection_refused',
        message: 'openai refuses connections: check that it runs, and MODEL_BASE_URL',
        ...RETRYABLE,
      },
    ],
    ['ENOTFOUND', { reason: 'dns_error', message: "openai's host was not found: check MODEL_BASE_URL" }],
    ['EAI_AGAIN', { reason: 'dns_error' }],
    [
      'ECONNRESET',
      { code: 'provider_unavailable', reason: 'connection_reset', message: 'openai broke the connection' },
    ],
    ['EPIPE', { reason: 'connection_reset' }],
    ['UND_ERR_SOCKET', { reason: 'connection_reset' }],
    ['HPE_INVALID_EOF_STATE', { reason: 'connection_reset' }],
    [
      'UND_ERR_ABORTED',
      { reason: 'proxy_error', message: 'openai was not reached through the proxy: check HTTPS_PROXY', ...RETRYABLE },
    ],
    ['UND_ERR_PRX_CONN', { reason: 'proxy_error' }],
    ['EHOSTUNREACH', { reason: 'no_answer', message: 'openai did not answer', ...RETRYABLE }],
    ['', { reason: 'no_answer' }],
  ]
  for (const [code, expected] of NETWORK) {
    it(`the network code "${code}" is ${expected.reason}`, () => {
      expect(connectionFailure(code, CALL)).to.include(expected)
      if (code !== '') expect(classifyFailure({ cause: { code } }, CALL)).to.include(expected)
    })
  }
})

describe('the failures of the adapters', () => {
  it('a failure is final by default; a retryable one allows failover too, unless that is excluded', () => {
    expect(failure('timeout', 'r', 'm')).to.deep.equal({ code: 'timeout', reason: 'r', message: 'm', ...FINAL })
    expect(failure('timeout', 'r', 'm', { isRetryable: true })).to.include(RETRYABLE)
    expect(failure('timeout', 'r', 'm', { isRetryable: true, isFailover: false })).to.include({ isFailover: false })
    expect(failure('timeout', 'r', 'm', { retryAfterMs: 0 })).to.include({ retryAfterMs: 0 })
  })

  it('the reason of an aborted answer is the one of the provider when it is one word of at most 40 characters', () => {
    const reasonOf = (raw?: string) => abortedAnswer(CALL, raw).reason
    expect([reasonOf('Abort'), reasonOf('x'.repeat(40))]).to.deep.equal(['abort', 'x'.repeat(40)])
    for (const raw of [undefined, '', 'two words', 'x'.repeat(41), 'a-b'])
      expect(reasonOf(raw)).to.equal('empty_answer')
  })

  it('a key that is no header value is malformed, at every address', () => {
    const reasonOf = (apiKey: string) => keyFailure({ type: 'openai', apiKey }, 'http://gw.test')?.reason
    for (const key of ['', 'sk-1', '!~']) expect(reasonOf(key), key).to.equal(undefined)
    for (const key of ['a b', 'a\n', '\na', 'ä', '\u007f']) expect(reasonOf(key), key).to.equal('malformed_api_key')
  })

  it("D1.3 MODEL_API_KEY: a missing key is a failure where the provider requires one, at the provider's own address only", () => {
    expect(PROVIDER_NAMES.filter((type) => PROVIDER_TYPES[type].isKeyRequired)).to.include.members([
      'openai',
      'anthropic',
    ])
    for (const type of PROVIDER_NAMES) {
      const { isKeyRequired } = PROVIDER_TYPES[type]
      const failed = keyFailure({ type, apiKey: '' }, undefined)
      expect(failed?.reason, type).to.equal(isKeyRequired ? 'missing_api_key' : undefined)
      expect(keyFailure({ type, apiKey: '' }, 'http://gw.test')).to.equal(undefined)
    }
  })

  const BREACHES = [
    ['first_byte', 'timeout', 'first_byte_timeout', 'did not begin its answer within 300 s', RETRYABLE],
    ['idle', 'timeout', 'idle_timeout', 'sent nothing for 300 s', RETRYABLE],
    ['turn', 'timeout', 'turn_timeout', 'did not end its answer within 600 s', RETRYABLE],
    ['turn_bytes', 'provider_unavailable', 'turn_bytes', 'sent more than 33554432 bytes in one answer', FAILOVER],
    ['event_bytes', 'provider_unavailable', 'event_bytes', 'sent more than 1048576 bytes in one event', FAILOVER],
    ['not_utf8', 'provider_unavailable', 'not_utf8', 'sent bytes that are not UTF-8 text', FAILOVER],
    ['web_page', 'provider_rejected', 'web_page', 'answered with a web page: check MODEL_BASE_URL', FINAL],
  ] as const
  for (const [breach, code, reason, text, flags] of BREACHES) {
    it(`the breach ${breach} is ${code}`, () => {
      const expected = { code, reason, message: `openai ${text}`, ...flags }
      expect(breachFailure(breach, CALL, MODEL_LIMITS)).to.deep.equal(expected)
    })
  }
})
