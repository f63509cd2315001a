import { expect } from 'chai'
import { type ErrorDetails, readErrorDetails } from '../../../../shared/agent/providers/failures/error-details.ts'

const httpError = (statusCode: number, body: unknown, responseHeaders: object = {}) => ({
  statusCode,
  responseHeaders,
  responseBody: typeof body === 'string' ? body : JSON.stringify(body),
})

/** An Error of the given code, as the cause of `depth` others. */
function causedBy(code: string, depth: number): Error {
  let error: Error = Object.assign(new Error('broken'), { code })
  for (let i = 0; i < depth; i++) error = new Error('wrapped', { cause: error })
  return error
}

describe('the details of an error', () => {
  const ROWS: [rule: string, error: unknown, expected: Partial<ErrorDetails>][] = [
    [
      'the body of a response is read as JSON',
      httpError(400, { error: { message: 'no', code: 'Bad', type: 'T' } }),
      { status: 400, providerCodes: 'bad t', providerMessage: 'no' },
    ],
    [
      'parsed data is preferred to the body',
      { ...httpError(400, { error: { message: 'body' } }), data: { error: { message: 'data' } } },
      { providerMessage: 'data' },
    ],
    [
      'a chunk of the stream is read',
      { value: { error: { message: 'busy', type: 'overloaded_error' } } },
      { status: 503, providerMessage: 'busy' },
    ],
    [
      'the error of a failed response is read',
      { value: { response: { error: { message: 'failed', code: 'server_error' } } } },
      { status: 500, providerMessage: 'failed' },
    ],
    ['an error in a list is read', httpError(400, [{ error: { message: 'listed' } }]), { providerMessage: 'listed' }],
    ['an error that is a text is its message', { error: 'crashed' }, { status: undefined, providerMessage: 'crashed' }],
    ['an `error` of null is ignored', httpError(400, { error: null, message: 'outer' }), { providerMessage: 'outer' }],
    ['a body may hold the message itself', httpError(422, { message: 'direct' }), { providerMessage: 'direct' }],
    ['`detail` replaces a missing message', httpError(422, { detail: 'detailed' }), { providerMessage: 'detailed' }],
    [
      '`message` is preferred to `detail`',
      httpError(422, { detail: 'second', message: 'first' }),
      { providerMessage: 'first' },
    ],
    [
      'a body that is no JSON holds no message',
      httpError(502, '<h1>Bad Gateway</h1>'),
      { status: 502, providerMessage: '', providerCodes: '' },
    ],
    [
      "the message of an Error of this process is not the provider's",
      new Error('internal text'),
      { status: undefined, providerMessage: '' },
    ],
    [
      'an error part without `error` is the error itself',
      { message: 'bare', code: 'not_found' },
      { status: 404, providerMessage: 'bare' },
    ],
    [
      'the reasons of details are codes too',
      httpError(400, { error: { status: 'INVALID_ARGUMENT', details: [{ reason: 'API_KEY_INVALID' }] } }),
      { providerCodes: 'invalid_argument api_key_invalid' },
    ],
    [
      'blank and missing codes are left out',
      httpError(400, { error: { code: '', type: 'a', status: 'B', details: [{}] } }),
      { providerCodes: 'a b' },
    ],
    [
      'details that are no list are ignored',
      httpError(400, { error: { code: 'c', details: { reason: 'r' } } }),
      { providerCodes: 'c' },
    ],
    [
      'the status of the response counts before the one in the body',
      httpError(429, { error: { code: 500 } }),
      { status: 429 },
    ],
    ["the body's status counts for a response of 200", httpError(200, { error: { code: 503 } }), { status: 503 }],
    ['a status may be a text', { error: { code: '529' } }, { status: 529 }],
    ["the body's `statusCode` counts before its `code`", { error: { statusCode: 500, code: 400 } }, { status: 500 }],
    ['its `code` counts before its `status`', { error: { code: 400, status: 500 } }, { status: 400 }],
    ['a status of 299 is none', { statusCode: 299 }, { status: undefined }],
    ['a status of 300 is one', { statusCode: 300 }, { status: 300 }],
    ['a status of 599 is one', { statusCode: 599 }, { status: 599 }],
    ['a status of 600 is none', { statusCode: 600 }, { status: undefined }],
    ['a status with a fraction is none', { statusCode: 400.5 }, { status: undefined }],
    [
      'nothing is known of undefined',
      undefined,
      { status: undefined, providerCodes: '', providerMessage: '', networkCode: undefined },
    ],
    ['nothing is known of a text', 'ECONNRESET', { status: undefined, providerMessage: '', networkCode: undefined }],
    ['a network code is found in the error', causedBy('ECONNRESET', 0), { networkCode: 'ECONNRESET' }],
    ['a network code is found in the fifth cause', causedBy('ECONNRESET', 5), { networkCode: 'ECONNRESET' }],
    ['a network code is not searched for in the sixth cause', causedBy('ECONNRESET', 6), { networkCode: undefined }],
    ['a code in lower case is no network code', causedBy('econnreset', 0), { networkCode: undefined }],
    ['a code that continues in lower case is no network code', causedBy('ECONNreset', 0), { networkCode: undefined }],
    ['a numeric `status` in the body counts', { error: { status: 503 } }, { status: 503 }],
    ['a code with blanks is no network code', causedBy('E RESET', 0), { networkCode: undefined }],
    ['a code of one letter is no network code', causedBy('E', 0), { networkCode: undefined }],
    [
      'there is no network code beside a status',
      { ...httpError(503, ''), cause: causedBy('ECONNRESET', 0) },
      { networkCode: undefined },
    ],
  ]
  for (const [rule, error, expected] of ROWS) {
    it(rule, () => expect(readErrorDetails(error)).to.deep.include(expected))
  }

  const CODES: [code: string, status: number | undefined][] = [
    ['insufficient_quota', 402],
    ['billing_error', 402],
    ['rate_limit_error', 429],
    ['RESOURCE_EXHAUSTED', 429],
    ['too_many_requests', 429],
    ['authentication_error', 401],
    ['invalid_api_key', 401],
    ['UNAUTHENTICATED', 401],
    ['permission_error', 403],
    ['model_not_found', 404],
    ['context_length_exceeded', 400],
    ['invalid_request_error', 400],
    ['bad_request', 400],
    ['overloaded_error', 503],
    ['UNAVAILABLE', 503],
    ['timeout_error', 504],
    ['DEADLINE_EXCEEDED', 504],
    ['server_error', 500],
    ['api_error', 500],
    ['INTERNAL', 500],
    ['something_else', undefined],
  ]
  for (const [type, status] of CODES) {
    it(`an error event of type ${type} stands for ${status ?? 'no status'}`, () => {
      expect(readErrorDetails({ error: { type, message: 'x' } }).status).to.equal(status)
    })
  }

  const WAITS: [rule: string, error: object, retryAfterMs: number | undefined][] = [
    ['Retry-After is in seconds', { 'retry-after': '7' }, 7_000],
    ['Retry-After may have a fraction', { 'retry-after': '0.25' }, 250],
    ['Retry-After is rounded to milliseconds', { 'retry-after': '0.0015' }, 2],
    ['Retry-After of 0 is no wait', { 'retry-after': '0' }, 0],
    ['a negative Retry-After is no wait', { 'retry-after': '-5' }, 0],
    ['a date in the past is no wait', { 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' }, 0],
    ['a Retry-After that is neither is ignored', { 'retry-after': 'soon' }, undefined],
    ['a missing Retry-After is none', {}, undefined],
    ['retry-after-ms is preferred', { 'retry-after-ms': '250', 'retry-after': '1' }, 250],
    ['retry-after-ms of 0 is used', { 'retry-after-ms': '0', 'retry-after': '1' }, 0],
    ['a negative retry-after-ms is ignored', { 'retry-after-ms': '-1', 'retry-after': '1' }, 1_000],
    ['a retry-after-ms that is no number is ignored', { 'retry-after-ms': 'x', 'retry-after': '1' }, 1_000],
  ]
  for (const [rule, headers, retryAfterMs] of WAITS) {
    it(rule, () => expect(readErrorDetails(httpError(429, '', headers)).retryAfterMs).to.equal(retryAfterMs))
  }

  it("Google's retryDelay is used where there is no header", () => {
    const error = { error: { details: [{ reason: 'r' }, { retryDelay: '3.5s' }] } }
    expect(readErrorDetails(httpError(429, error)).retryAfterMs).to.equal(3_500)
    expect(readErrorDetails(httpError(429, error, { 'retry-after': '1' })).retryAfterMs).to.equal(1_000)
    expect(readErrorDetails(httpError(429, { error: { details: [{ retryDelay: 's' }] } })).retryAfterMs).to.equal(
      undefined,
    )
  })
})
