import { expect } from 'chai'
import { sessionOf } from '../../gateway/session-of.ts'
import { apiContract } from '../../support/api-document.ts'
import type { Contract } from './contract.ts'

const ID = { 'x-request-id': 'req_1' }
const JSON_TYPE = { ...ID, 'content-type': 'application/json; charset=utf-8' }
const SESSION = sessionOf()
const WARNING = { code: 'price_unknown', message: '', detail: {} }
const LIMITS = { 'ratelimit-limit': '60', 'ratelimit-remaining': '59', 'ratelimit-reset': '0' }

const refusal = (type: string) => ({ error: { type: `${type}_error`, message: 'no' } })

describe('the check of answers against the API description', () => {
  let contract: Contract
  before(async () => {
    contract = await apiContract()
  })

  type Sent = { method?: string; path?: string; status?: number; headers?: Record<string, string>; body?: unknown }

  const problemsOf = ({ method = 'GET', path = '/sessions/s-1', status = 200, headers = JSON_TYPE, ...rest }: Sent) =>
    contract.problemsOfAnswer(method, path, { status, headers: new Headers(headers), ...rest })

  const right: [string, Sent][] = [
    ['an answer as it is described', { body: SESSION }],
    ['an answer that counts against the rate limit', { headers: { ...JSON_TYPE, ...LIMITS }, body: SESSION }],
    ['a refusal', { status: 404, body: refusal('not_found') }],
    ['an answer to HEAD', { method: 'HEAD' }],
    ['a path with a query', { path: '/runs?limit=1', body: { runs: [], next_cursor: null } }],
    ['an unknown path', { path: '/nowhere', status: 404, body: refusal('not_found') }],
    [
      'a wrong method',
      {
        method: 'PUT',
        status: 405,
        headers: { ...JSON_TYPE, allow: 'GET, HEAD, PATCH, DELETE, OPTIONS' },
        body: refusal('invalid_request'),
      },
    ],
    [
      'whatever a transcription backend answers',
      { method: 'POST', path: '/audio/transcriptions', status: 418, body: 1 },
    ],
  ]
  for (const [what, sent] of right) it(`${what} has no problem`, () => expect(problemsOf(sent)).to.equal(''))

  const wrong: [string, Sent, RegExp][] = [
    ['an undescribed status', { status: 202, body: SESSION }, /is not described/],
    ['an undescribed field', { body: { ...SESSION, tenant: 'acme' } }, /unevaluated/],
    [
      'an undescribed field of an error',
      { status: 404, body: { error: { ...refusal('not_found').error, x: 1 } } },
      /unevaluated/,
    ],
    ['a missing field', { body: { session_id: 's-1' } }, /created_at/],
    ['an id of another form', { body: { ...SESSION, session_id: 'a b' } }, /pattern/],
    ['a missing header', { headers: { 'content-type': 'application/json' }, body: SESSION }, /X-Request-ID is missing/],
    [
      'a header of another form',
      { headers: { ...JSON_TYPE, 'x-request-id': 'ä' }, body: SESSION },
      /X-Request-ID is "ä"/,
    ],
    [
      'an undescribed header',
      { headers: { ...JSON_TYPE, 'x-run-id': 'run_1' }, body: SESSION },
      /X-Run-ID is not described/,
    ],
    [
      'half of the rate limit',
      { headers: { ...JSON_TYPE, 'ratelimit-limit': '60' }, body: SESSION },
      /only RateLimit-Limit/,
    ],
    ['429 without Retry-After', { status: 429, body: refusal('rate_limit') }, /Retry-After is missing/],
    [
      'another content type',
      { headers: { ...ID, 'content-type': 'text/html' }, body: '' },
      /"text\/html" is not described/,
    ],
    ['an undescribed path', { path: '/nowhere', body: {} }, /is not described/],
    ['an undescribed method', { method: 'PUT', body: {} }, /is not described/],
    [
      'a wrong method with another Allow',
      { method: 'PUT', status: 405, headers: { ...JSON_TYPE, allow: 'GET' }, body: refusal('invalid_request') },
      /is not described/,
    ],
    ['an unknown path without the envelope', { path: '/nowhere', status: 404, body: 'Cannot GET' }, /object/],
  ]
  for (const [what, sent, problem] of wrong) {
    it(`${what} is a problem`, () => expect(problemsOf(sent)).to.match(problem))
  }

  const child = { subagent_id: `sub_${'0'.repeat(32)}`, event_type: 'text', text: 'a' }
  const TRACE = `trace_${'0'.repeat(32)}`
  const AT = { at: '2026-11-22T09:30:00.000Z' }
  const lost = { error: '', code: 'worker_lost', detail: '', suggestion: '', retryable: true }
  const result = { flow_id: 'f', flow_version: 1, trace_id: TRACE, verdict: 'ok', output: [1], served_instance: 'i' }
  const flowFrames: [string, object, boolean][] = [
    ['a result', { id: 1, event: 'result', data: { ...result, ...AT } }, true],
    ['a result without its time', { id: 1, event: 'result', data: result }, false],
    ['a result with an undescribed field', { id: 1, event: 'result', data: { ...result, ...AT, x: 1 } }, false],
    [
      'the failure of the flow',
      { id: 1, event: 'error', data: { ...lost, ...AT, status: 502, trace_id: TRACE } },
      true,
    ],
    ['the failure of the connection', { id: 1, event: 'error', data: lost }, true],
    ['a failure without its status', { id: 1, event: 'error', data: { ...lost, ...AT, trace_id: TRACE } }, false],
    ["the warning of a flow's agent", { id: 1, event: 'warning', data: { ...WARNING, ...AT, agent: 'main' } }, true],
    ['a warning of nobody', { id: 1, event: 'warning', data: { ...WARNING, ...AT } }, false],
  ]
  for (const [what, frame, isRight] of flowFrames) {
    it(`${what} is ${isRight ? 'a frame' : 'no frame'} of a flow`, () => {
      const problem = contract.problemsOfFrame('GET', `/dispatches/${TRACE}/events`, frame)
      expect(problem === '', problem).to.equal(isRight)
    })
  }

  it("a run's stream has frames of agents and of flows, and each other stream only its own", () => {
    const own = { id: 1, event: 'text', data: { text: 'a' } }
    const flows = { id: 1, event: 'result', data: { ...result, ...AT } }
    const isFrame = (method: string, path: string, frame: object) =>
      contract.problemsOfFrame(method, path, frame) === ''
    expect([own, flows].map((frame) => isFrame('GET', '/runs/r/events', frame))).to.deep.equal([true, true])
    expect([own, flows].map((frame) => isFrame('POST', '/agent/run', frame))).to.deep.equal([true, false])
    expect([own, flows].map((frame) => isFrame('POST', '/flows/f/run', frame))).to.deep.equal([false, true])
    expect([own, flows].map((frame) => isFrame('GET', '/runs', frame))).to.deep.equal([false, false])
  })

  const frames: [string, object, boolean][] = [
    ['an event', { id: 1, event: 'text', data: { text: 'a' } }, true],
    ['an event with an undescribed field', { id: 1, event: 'text', data: { text: 'a', x: 1 } }, false],
    ['an unknown event', { id: 1, event: 'texts', data: { text: 'a' } }, false],
    ['the data of another event', { id: 1, event: 'turn_start', data: { text: 'a' } }, false],
    [
      'an unknown error code',
      { id: 1, event: 'error', data: { error: '', code: 'x', detail: '', suggestion: '', retryable: true } },
      false,
    ],
    ["a sub-agent's event", { id: 1, event: 'subagent_event', data: child }, true],
    [
      "a sub-agent's event with an undescribed field",
      { id: 1, event: 'subagent_event', data: { ...child, x: 1 } },
      false,
    ],
    [
      "a sub-agent's event without its own fields",
      { id: 1, event: 'subagent_event', data: { ...child, text: undefined } },
      false,
    ],
    ['a queued plan', { id: 1, event: 'plan_queued', data: { plan_id: `plan_${'0'.repeat(32)}` } }, true],
    ['neither a plan nor a note', { id: 1, event: 'plan_queued', data: {} }, false],
  ]
  for (const [what, frame, isRight] of frames) {
    it(`${what} is ${isRight ? 'a frame' : 'no frame'}`, () => {
      expect(
        contract.problemsOfFrame('POST', '/agent/run', JSON.parse(JSON.stringify(frame)) as object) === '',
      ).to.equal(isRight)
    })
  }
})
