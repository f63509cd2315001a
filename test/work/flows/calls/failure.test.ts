import { expect } from 'chai'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { errorOf, withTrace } from '../../../../shared/work/flows/calls/failure.ts'

const TRACE = 'trace_1'

describe('the failure of an execution as an answer', () => {
  it('has the status, the type, the code and the message that are stored', () => {
    const failure = { status: 502, type: 'upstream_error', message: 'the agent failed', code: 'provider_auth' } as const
    const error = errorOf(failure, TRACE)
    expect(error).to.include({ status: 502, kind: 'upstream', code: 'provider_auth', message: 'the agent failed' })
    expect([error.traceId, error.retryAfterSecs]).to.deep.equal([TRACE, undefined])
  })

  it('says when to try again where that may help', () => {
    const retryOf = (status: number) =>
      errorOf({ status, type: 'unavailable_error', message: 'm' }, TRACE).retryAfterSecs
    expect([503, 429, 502, 504].map(retryOf)).to.deep.equal([5, 5, undefined, undefined])
  })

  it('D6.5: a refusal names the execution that it refuses, and stays the same otherwise', () => {
    const cause = new AppError('rate_limit', 'later', {
      param: '/model',
      retryAfterSecs: 7,
      code: 'budget_exhausted',
    })
    const { kind, message, param, code, status, retryAfterSecs, traceId } = withTrace(cause, TRACE)
    expect({ kind, message, param, code, status, retryAfterSecs, traceId }).to.deep.equal({
      ...{ kind: 'rate_limit', message: 'later', param: '/model', code: 'budget_exhausted', status: 429 },
      ...{ retryAfterSecs: 7, traceId: TRACE },
    })
    const plain = withTrace(new AppError('conflict', 'no'), TRACE)
    expect([plain.code, plain.retryAfterSecs]).to.deep.equal([undefined, undefined])
  })
})
