import { expect } from 'chai'
import { ApiError, objectIn, wrongAnswer } from '../../shared/client/errors.ts'

const refusedWith = (body: string, headers: Record<string, string> = {}) =>
  new ApiError(new Response(null, { status: 400, statusText: 'Bad Request', headers }), body)

const ROWS: [what: string, body: string, headers: Record<string, string>, fields: object][] = [
  [
    'of the server says what that says',
    JSON.stringify({ error: { message: 'no', type: 't', code: 'c', param: '/a', problems: [{ param: '/b' }] } }),
    { 'x-request-id': 'r', 'retry-after': '0' },
    { message: 'no', type: 't', code: 'c', param: '/a', problems: [{ param: '/b' }], requestId: 'r', retryAfterMs: 0 },
  ],
  [
    'of a proxy says the beginning of its text',
    `<h1>${'x'.repeat(300)}`,
    {},
    { message: `400 <h1>${'x'.repeat(196)}`, type: 'unknown', problems: [], requestId: undefined },
  ],
  ['without a text says its status', '', { 'retry-after': '-1' }, { message: '400 Bad Request', type: 'unknown' }],
  ['of another server is one of a proxy', '{"detail": 1}', { 'retry-after': 'soon' }, { message: '400 {"detail": 1}' }],
]

describe('the errors of the client', () => {
  for (const [what, body, headers, fields] of ROWS)
    it(`a refusal ${what}`, () => {
      const error = refusedWith(body, headers)
      for (const [name, value] of Object.entries({ status: 400, retryAfterMs: undefined, ...fields }))
        expect(error, name).to.have.deep.property(name, value)
    })

  it('an answer is an object, and the beginning of any other one is shown', () => {
    for (const [text, object] of [
      ['\n {"a":1}', { a: 1 }],
      ['[{}]', undefined],
      ['{"a":', undefined],
    ] as const)
      expect(objectIn(text)).to.deep.equal(object)
    for (const [came, shown] of [
      [undefined, 'null'],
      ['x'.repeat(300), `"${'x'.repeat(199)}`],
    ])
      expect(() => wrongAnswer(came)).to.throw(`the answer is ${shown}: check the url`)
  })
})
