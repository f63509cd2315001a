import { expect } from 'chai'
import { renderFrame } from '../../../../shared/cluster/journal/frames.ts'
import { AppError } from '../../../../shared/kernel/errors.ts'
import {
  answerIn,
  answerOf,
  errorOf,
  storedAnswer,
  terminalEvent,
  terminalFrame,
  withTrace,
} from '../../../../shared/work/flows/execute/outcome.ts'
import { FAILED, newDispatch, OK, OUTPUT, START } from '../../../contract/dispatch-setup.ts'

const TRACE = 'trace_1'
const AT = new Date(START + 5_000).toISOString()
const OK_RUN = { ...newDispatch(START, { ended_at: AT }), ...OK }
const FAILED_RUN = { ...newDispatch(START, { ended_at: AT }), ...FAILED }
const ANSWER = answerOf(OK_RUN, OUTPUT)
const TURN = { agent: 'main', turn_number: 1, model: 'm', input_tokens: 1, output_tokens: 1, cost_usd: 0 }
const PROGRESS = renderFrame(1, { type: 'progress', ...TURN, at: AT })
const RESULT = renderFrame(2, terminalEvent(OK_RUN, OUTPUT))

describe('the answer of a flow run', () => {
  it('is read from the last frames of the run, as text or as bytes', () => {
    for (const text of [PROGRESS + RESULT, Buffer.from(PROGRESS + RESULT), RESULT])
      expect(answerIn({ text, lastSeq: 2 })).to.deep.equal(ANSWER)
    expect(answerIn({ text: PROGRESS, lastSeq: 1 })).to.equal(undefined)
    expect(answerIn({ text: '', lastSeq: 0 })).to.equal(undefined)
  })

  it('is that of the record of an ended run, or its failure', () => {
    expect(storedAnswer(OK_RUN, OUTPUT)).to.deep.include({ output: OUTPUT.output, trace_id: OK_RUN.trace_id })
    expect(() => storedAnswer(FAILED_RUN, undefined)).to.throw(AppError, 'the main agent failed')
  })

  it('D4.2: comes again with the number of the last frame, for a reader who has missed it', () => {
    expect(terminalFrame(OK_RUN, OUTPUT, 7))
      .to.match(/^id: 7\nevent: result\n/)
      .and.include(`"at":"${AT}"`)
    expect(terminalFrame(FAILED_RUN, undefined, 7))
      .to.match(/^id: 7\nevent: error\n/)
      .and.include('provider_auth')
  })
})

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
    const used = { status: 429, type: 'rate_limit_error', message: 'm', code: 'budget_exhausted', retry_after_secs: 90 }
    const endedAgo = (secs: number) => ({
      ...FAILED_RUN,
      error: used,
      ended_at: new Date(Date.now() - secs * 1_000).toISOString(),
    })
    for (const [secs, wanted] of [
      [0, 90],
      [60, 30],
      [600, 5],
    ] as const)
      expect(() => storedAnswer(endedAgo(secs), undefined), `${secs} s later`)
        .to.throw()
        .with.property('retryAfterSecs', wanted)
    expect(terminalFrame(endedAgo(0), undefined, 7)).to.include('"retry_after_secs":90')
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
