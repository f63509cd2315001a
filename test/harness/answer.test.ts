import { expect } from 'chai'
import { type Answer, readAnswer } from './answer.ts'
import { problemsOf } from './answer-problems.ts'

const bytes = (...lines: string[]) => Buffer.from(lines.join('\r\n'), 'latin1')
const BODY = '{"error":{"type":"not_found_error","message":"no such path"}}'
const ID = 'X-Request-ID: req_1'

function answerOf(status: string, headers: string[], body = ''): Answer {
  const answer = readAnswer(bytes(`HTTP/1.1 ${status}`, ...headers, `Content-Length: ${body.length}`, '', body))
  if (!answer) throw new Error('the answer is incomplete')
  return answer
}

describe('the parser of HTTP answers', () => {
  const plain = bytes('HTTP/1.1 404 Not Found', 'X-A: 1', 'Content-Length: 5', '', 'hello')
  const chunked = bytes('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', '', '5', 'hello', '1', '!', '0', '', '')

  it('an answer is whole with its last byte and not before, with a Content-Length and in chunks', () => {
    for (const [whole, body] of [
      [plain, 'hello'],
      [chunked, 'hello!'],
    ] as const) {
      for (let at = 0; at < whole.length; at += 1) {
        expect(readAnswer(whole.subarray(0, at))?.isWhole ?? false, String(at)).to.equal(false)
      }
      const answer = readAnswer(Buffer.concat([whole, Buffer.from('HTTP/1.1 200 OK\r\n')]))
      expect(answer).to.include({ isWhole: true, size: whole.length })
      expect(String(answer?.body)).to.equal(body)
    }
  })

  it('a 100 Continue is skipped, and its bytes count as part of the answer', () => {
    const first = bytes('HTTP/1.1 100 Continue', '', '')
    expect(readAnswer(first)).to.equal(undefined)
    expect(readAnswer(Buffer.concat([first, plain]))).to.include({ status: 404, size: first.length + plain.length })
  })

  it('an answer to HEAD has no body whatever its Content-Length says; neither has a 204 or a 304', () => {
    expect(readAnswer(plain, true)).to.include({ isWhole: true, isHead: true, size: plain.length - 5 })
    for (const status of ['204 No Content', '304 Not Modified']) {
      expect(readAnswer(bytes(`HTTP/1.1 ${status}`, '', ''))).to.include({ isWhole: true })
    }
  })

  it('bytes that are not HTTP are an error', () => {
    expect(() => readAnswer(bytes('+PONG', '', ''))).to.throw('not an HTTP response')
  })
})

describe('the rules for every answer', () => {
  const JSON_TYPE = 'Content-Type: application/json; charset=utf-8'

  it('a refusal with the error envelope and an X-Request-ID breaks no rule', () => {
    expect(problemsOf(answerOf('404 Not Found', [ID, JSON_TYPE], BODY))).to.deep.equal([])
  })

  const broken: [string, Answer, RegExp][] = [
    ['a 500', answerOf('500 Oh', [ID, JSON_TYPE], BODY.replace('not_found', 'internal')), /^status 500$/],
    ['no X-Request-ID', answerOf('200 OK', []), /no X-Request-ID/],
    ['an X-Request-ID with a blank', answerOf('200 OK', ['X-Request-ID: a b']), /no X-Request-ID/],
    [
      'a body that is not JSON',
      answerOf('404 Not Found', [ID, 'Content-Type: text/html'], '<h1>'),
      /without a JSON body/,
    ],
    ['truncated JSON', answerOf('404 Not Found', [ID, JSON_TYPE], BODY.slice(0, -1)), /without the error envelope/],
    [
      'JSON without the envelope',
      answerOf('404 Not Found', [ID, JSON_TYPE], '{"error":"x"}'),
      /without the error envelope/,
    ],
    [
      'an error type that belongs to another status',
      answerOf('403 No', [ID, JSON_TYPE], BODY),
      /403 with the type not_found_error/,
    ],
    [
      'an unknown error type',
      answerOf('404 No', [ID, JSON_TYPE], BODY.replace('not_found_error', 'x')),
      /with the type x/,
    ],
    [
      'a stack trace in the message',
      answerOf('404 No', [ID, JSON_TYPE], BODY.replace('no such', '\\n    at x')),
      /reveals/,
    ],
    [
      'an error code of the HTTP parser in the message',
      answerOf('404 No', [ID, JSON_TYPE], BODY.replace('no such', 'HPE_INVALID_URL')),
      /reveals/,
    ],
    ['a 405 without Allow', answerOf('405 No', [ID, JSON_TYPE], BODY), /405 without Allow/],
    ['a 429 without Retry-After', answerOf('429 No', [ID, JSON_TYPE], BODY), /429 without Retry-After/],
  ]
  for (const [what, answer, problem] of broken) {
    it(`${what} is reported`, () => expect(problemsOf(answer).join('; ')).to.match(problem))
  }
})
