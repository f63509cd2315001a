import { expect } from 'chai'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { type FlowFailure, isTerminal, type RunErrorCode } from '../../../../shared/kernel/events.ts'
import {
  answerOf,
  failureOf,
  invalidSubAgent,
  refusalOf,
  terminalEvent,
} from '../../../../shared/work/flows/execute/outcome.ts'
import { newDispatch } from '../../../contract/dispatch-setup.ts'

const AT = '2026-01-02T03:04:05.678Z'
const USED = { turns: 2, input_tokens: 30, output_tokens: 4, cost_usd: 0.5 }
const TOTALS = { total_input_tokens: 30, total_output_tokens: 4, total_tokens: 34, cost_usd: 0.5, turn_count: 2 }

const DISPATCH = {
  trace_id: 'trace_1',
  flow: { name: 'review', uid: 'flow_1', version: 3 },
  status: 'ok',
  served_instance: 'one',
} as const
const OUTPUT = { output: { answer: 'yes' } }

const failed = (error: FlowFailure) =>
  terminalEvent(newDispatch(0, { trace_id: 'trace_1', error, ...USED, ended_at: AT }), undefined)

describe('the answer of an execution', () => {
  it('api.md "Named flows": has the fields of the synchronous body, and of the event', () => {
    const answer = {
      flow_id: 'review',
      flow_version: 3,
      trace_id: 'trace_1',
      verdict: 'ok',
      output: { answer: 'yes' },
      served_instance: 'one',
    }
    expect(answerOf(DISPATCH, OUTPUT)).to.deep.equal(answer)
    const ended = newDispatch(0, { ...DISPATCH, ...USED, ended_at: AT })
    const event = terminalEvent(ended, OUTPUT)
    expect(JSON.parse(JSON.stringify(event))).to.deep.equal({ type: 'result', ...answer, at: AT })
    expect(event, 'the totals, for the record').to.include(TOTALS)
  })

  it('D6.4: has no output when that is invalid', () => {
    const problems = [{ path: '/answer', message: 'must be a string' }]
    const answer = answerOf({ ...DISPATCH, status: 'invalid_output' }, { ...OUTPUT, problems })
    expect(answer).to.include({ verdict: 'invalid_output', output: null, problems })
  })
})

describe('the failure of an execution', () => {
  const classes: [status: number, type: string, codes: RunErrorCode[]][] = [
    [
      502,
      'upstream_error',
      [
        'provider_auth',
        'provider_rate_limited',
        'provider_unavailable',
        'provider_rejected',
        'context_too_long',
        'content_filtered',
        'max_turns_exceeded',
        'timeout',
      ],
    ],
    [409, 'conflict_error', ['cancelled']],
    [503, 'unavailable_error', ['worker_draining', 'storage_unavailable']],
    [500, 'internal_error', ['internal']],
  ]
  for (const [status, type, codes] of classes) {
    it(`api.md "Named flows" 4: is ${status} ${type} for ${codes.join(', ')}`, () => {
      for (const code of codes) {
        const failure = failureOf(code, 'why')
        expect(failure).to.deep.equal({ status, type, message: 'why', code })
        const event = failed(failure)
        expect(event).to.include({ type: 'error', error: 'why', code, status, trace_id: 'trace_1', at: AT, ...TOTALS })
        expect(event).to.have.property('suggestion').that.is.not.empty
        expect(isTerminal(event)).to.equal(true)
      }
    })
  }

  it('api.md "Named flows" 4: names the sub-agent and its instance', () => {
    expect(failureOf('timeout', 'it was silent', { agent: 'critic', instance: 'one' }).message).to.equal(
      'sub-agent critic failed at instance one: it was silent',
    )
    expect(failureOf('timeout', 'it was silent', { agent: 'main', instance: 'one' }).message).to.equal(
      'the main agent failed at instance one: it was silent',
    )
    expect(invalidSubAgent({ agent: 'critic', instance: 'one' }, 3)).to.deep.equal({
      status: 502,
      type: 'upstream_error',
      message: 'sub-agent critic failed at instance one: its answer did not fit its output_schema in 3 tries',
    })
  })

  it('of a refusal has its status, and its code where it has one', () => {
    expect(refusalOf(new AppError('unavailable', 'no store'))).to.deep.equal({
      status: 503,
      type: 'unavailable_error',
      message: 'no store',
    })
    expect(refusalOf(new AppError('unavailable', 'no key', { code: 'secret_missing' }))).to.include({
      code: 'secret_missing',
    })
  })

  const coded: [failure: Partial<FlowFailure>, code: RunErrorCode, isRetryable: boolean][] = [
    [{ status: 502 }, 'provider_unavailable', true],
    [{ status: 503, code: 'secret_missing' }, 'storage_unavailable', true],
    [{ status: 409 }, 'cancelled', false],
    [{ status: 500, code: 'constructor' }, 'internal', false],
    [{ status: 400 }, 'provider_rejected', false],
  ]
  for (const [failure, code, retryable] of coded) {
    it(`D4.8: is an event with the code ${code} for ${JSON.stringify(failure)}`, () => {
      const event = failed({ status: 0, type: 't', message: 'm', ...failure })
      expect(event).to.include({ code, retryable })
    })
  }
})
