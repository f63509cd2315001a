import { expect } from 'chai'
import { CliError, EXIT, EXIT_CODE_HELP, exitCodeOf, explain } from '../../services/cli/exit-codes.ts'
import { ApiError, ConnectionFailed, RunFailed, RunLost, type Schema } from '../../shared/client/client.ts'

const answer = (status: number, error: object = {}, headers: Record<string, string> = {}) =>
  new ApiError(new Response(null, { status, headers }), JSON.stringify({ error: { message: 'no', ...error } }))
const failed = (code: Schema<'RunErrorCode'>, retryable = false) =>
  new RunFailed({ error: 'it broke', code, suggestion: 'Mend it.', retryable }, 'run_1')

describe('services/cli/exit-codes', () => {
  it('each refusal of the server has its exit code', () => {
    const codes = [400, 401, 403, 404, 409, 413, 429, 500, 502, 503].map((status) => exitCodeOf(answer(status)))
    expect(codes).to.deep.equal([2, 77, 3, 4, 1, 2, 75, 1, 69, 75])
    const upstream = answer(502, { type: 'upstream' })
    expect(exitCodeOf(upstream), 'a provider that fails, and not the server').to.equal(1)
  })

  it('a run that fails is 1, one that is cancelled 130, one that is unknown 4, and a server that is away 69', () => {
    const causes = [
      failed('provider_auth'),
      failed('timeout', true),
      failed('cancelled'),
      new RunLost('run_1', null),
      new ConnectionFailed('x'),
    ]
    expect(causes.map(exitCodeOf)).to.deep.equal([1, 1, 130, 4, 69])
  })

  it('a bug has none', () => {
    expect(exitCodeOf(new TypeError('x'))).to.equal(undefined)
  })

  it('the help lists every code', () => {
    const listed = [...EXIT_CODE_HELP.matchAll(/^ {2}(\d+)/gm)].map(([, code]) => Number(code))
    expect(listed).to.deep.equal(Object.values(EXIT))
  })

  it('an error says what to do next', () => {
    expect(explain(failed('provider_auth'), '').hints).to.deep.equal(['Mend it.', 'ae why run_1'])
    expect(explain(answer(401), '').hints).to.deep.equal(['Sign in with `ae login`, or set AE_TOKEN.'])
    expect(explain(answer(500, {}, { 'x-request-id': 'req_1' }), '').hints).to.deep.equal([
      "The server's log has it as req_1.",
    ])
    expect(explain(answer(400, { param: '/prompt', problems: [{ param: '/a', message: 'b' }] }), '')).to.deep.equal({
      message: 'no (at /prompt)',
      hints: ['/a: b'],
    })
    expect(explain(new ConnectionFailed('x', { cause: new Error('refused') }), 'http://a').message).to.equal(
      'the server at http://a cannot be reached: refused',
    )
    expect(explain(new CliError(EXIT.usage, 'm', 'h'), '')).to.deep.equal({ message: 'm', hints: ['h'] })
  })
})
