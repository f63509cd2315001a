import { expect } from 'chai'
import { invalidRequest } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { failureOf } from '../../../shared/work/flows/execute/outcome.ts'
import type { Dispatch, DispatchEnd } from '../../../shared/work/flows/port.ts'
import {
  begunBy,
  type DispatchTransition,
  end,
  endBy,
  isEnded,
  isHeldBy,
  isLost,
  jobOf,
  type LossEvent,
  newDispatch,
  noteAction,
  numbersBefore,
  rejected,
  takeOver,
} from '../../../shared/work/flows/transitions.ts'
import { FAILED, OK, newDispatch as queuedDispatch } from '../../contract/dispatch-setup.ts'

const START = Date.parse('2026-11-22T10:00:00.000Z')
const at = new Date(START + 1_500)

const after = (dispatch: Dispatch, ...transitions: DispatchTransition[]): Dispatch =>
  transitions.reduce((now, transition, i) => {
    const next = transition(now)
    if (!next) throw new Error(`transition ${i} does not apply`)
    return next
  }, dispatch)

const ending = (executor: number | null, result: DispatchEnd = OK) => end({ executor, result, at })

const QUEUED = queuedDispatch(START)
const RUNNING = { ...QUEUED, ...begunBy(7) }
const INVALID: DispatchEnd = { ...OK, status: 'invalid_output' }

/** One record in each state. */
const STATES = {
  queued: QUEUED,
  running: RUNNING,
  ok: after(RUNNING, ending(7)),
  invalid_output: after(RUNNING, ending(7, INVALID)),
  error: after(RUNNING, ending(7, FAILED)),
  rejected: rejected(QUEUED, invalidRequest('the input is wrong')),
} satisfies Record<Dispatch['status'], Dispatch>

/** The statuses of the records to which a transition or an event applies. */
const appliesTo = (applies: (dispatch: Dispatch) => unknown) =>
  Object.values(STATES)
    .filter((dispatch) => applies(dispatch) !== undefined)
    .map(({ status }) => status)

type Status = Dispatch['status']

const TRANSITIONS: { event: string; transition: DispatchTransition; from: Status[] }[] = [
  { event: 'its executor records the end', transition: ending(7), from: ['running'] },
  { event: 'another executor records an end', transition: ending(8), from: [] },
  { event: 'it is ended for want of an executor', transition: ending(null, FAILED), from: ['queued'] },
]

const REFUSED = failureOf('relay_unavailable', 'the queue is away')
const LOST = { status: 502, code: 'worker_lost' }

const LOSSES: { event: LossEvent; is: string; from: Status[]; failure: object; status?: Status }[] = [
  {
    is: 'the queue refuses its job',
    event: { type: 'not_queued', failure: REFUSED },
    from: ['queued'],
    failure: REFUSED,
    status: 'rejected',
  },
  {
    is: 'no executor takes it within 30 s',
    event: { type: 'waited', ms: 30_001 },
    from: ['queued'],
    failure: { status: 503, type: 'unavailable_error' },
  },
  { is: 'it has waited for 30 s', event: { type: 'waited', ms: 30_000 }, from: [], failure: {} },
  {
    is: 'a client cancels it',
    event: { type: 'cancelled', executor: null },
    from: ['queued'],
    failure: { status: 409, code: 'cancelled' },
  },
  {
    is: 'its executor has died',
    event: { type: 'executor_died', executor: 7, ms: 0 },
    from: ['running'],
    failure: LOST,
  },
  { is: 'another executor has died', event: { type: 'executor_died', executor: 8, ms: 0 }, from: [], failure: {} },
  { is: 'the queue gives up its job', event: { type: 'given_up' }, from: ['queued', 'running'], failure: LOST },
  {
    is: 'its executor could not record the end',
    event: { type: 'not_recorded', executor: 7 },
    from: ['running'],
    failure: { status: 503, code: 'storage_unavailable' },
  },
  {
    is: 'another executor could not record an end',
    event: { type: 'not_recorded', executor: 8 },
    from: [],
    failure: {},
  },
]

const listed = (from: readonly Status[]) => from.map((status) => `one that is ${status}`).join(' or ') || 'none'

describe('the transitions of a dispatch', () => {
  it('a new dispatch is queued, keeps the request, and expires when the tenant says', () => {
    const definition = { input_schema: {}, output_schema: {}, tools: [], model: 'm1', sub_agents: [], evolve: false }
    const flow = { name: 'summarize', uid: 'flow_1', version: 3, definition }
    const request = { provider_instance: 'main', input: {} }
    const execution = { kind: 'run' as const, flow, request, subject: 'anna', idempotencyKey: undefined }
    const audit = { store_payloads: true, retention_days: 30 }
    const made = newDispatch(execution, { traceId: QUEUED.trace_id, audit, at: new Date(START) })
    expect(made).to.deep.equal({ ...QUEUED, fallback: null })
    const named = { ...execution, request: { ...request, model: 'm2' }, idempotencyKey: 'k1' }
    const other = newDispatch(named, { traceId: 't', audit: { store_payloads: false, retention_days: 1 }, at })
    expect(other).to.include({ model: 'm2', idempotency_key: 'k1', keeps_payloads: false })
    expect(Date.parse(other.expires_at) - at.getTime()).to.equal(86_400_000)
  })

  it('D54.8: one with a deadline waits for its executor until then, begins anew without a key, and outlasts it by a day', () => {
    const definition = { input_schema: {}, output_schema: {}, tools: [], sub_agents: [], evolve: false }
    const flow = { name: 'summarize', uid: 'flow_1', version: 3, definition }
    const request = { provider_instance: 'main', model: 'm', input: {}, deadline_hours: 48 }
    const execution = { kind: 'run' as const, flow, request, subject: 'anna', idempotencyKey: undefined }
    const audit = { store_payloads: false, retention_days: 1 }
    const made = newDispatch(execution, { traceId: QUEUED.trace_id, audit, at: new Date(0) })
    expect(made).to.include({ priority: 'batch', deadline_at: '1970-01-03T00:00:00.000Z' })
    expect(made.expires_at).to.equal('1970-01-04T00:00:00.000Z')
    const hurried = { ...request, priority: 'normal' as const }
    expect(newDispatch({ ...execution, request: hurried }, { traceId: 't', audit, at }).priority).to.equal('normal')
    expect(endBy(made, { type: 'waited', ms: 3_600_000 })).to.equal(undefined)
    expect(jobOf(DEFAULT_TENANT, made)).to.deep.equal({ kind: 'batch', tenant: DEFAULT_TENANT, id: made.trace_id })
    expect(jobOf(DEFAULT_TENANT, QUEUED).kind).to.equal('flow')
    const begun = { ...made, ...begunBy(7) }
    const died = (more: Partial<Dispatch> = {}) =>
      endBy({ ...begun, ...more }, { type: 'executor_died', executor: 7, ms: 3_600_000 })?.error?.code
    expect([died(), died({ starts: 4 })]).to.deep.equal([undefined, undefined])
    expect([died({ starts: 5 }), died({ has_acted: true })]).to.deep.equal(['worker_lost', 'worker_lost'])
  })

  it('an end has the result, the time and the output that was stored for it', () => {
    const times = { ended_at: at.toISOString(), duration_ms: 1_500 }
    expect(ending(7)(RUNNING)).to.deep.equal({ ...RUNNING, ...OK, ...times })
    const stored = end({ executor: 7, result: OK, outputId: 'out_1', at })(RUNNING)
    expect(stored).to.deep.equal({ ...RUNNING, ...OK, ...times, output_id: 'out_1' })
  })

  it('an end by a clock that is behind took no time', () => {
    expect(end({ executor: 7, result: OK, at: new Date(START - 1) })(RUNNING)).to.include({ duration_ms: 0 })
  })

  for (const { event, transition, from } of TRANSITIONS)
    it(`when ${event}, ${listed(from)} changes`, () => {
      expect(appliesTo(transition)).to.deep.equal(from)
    })

  for (const { event, is, from, failure, status: ended = 'error' } of LOSSES)
    it(`when ${is}, ${listed(from)} ends as ${ended}`, () => {
      expect(appliesTo((dispatch) => endBy(dispatch, event))).to.deep.equal(from)
      for (const status of from) {
        const result = endBy(STATES[status], event)
        expect(result).to.include({ status: ended, served_instance: null })
        expect(result?.error).to.include(failure)
      }
    })

  it('a loss keeps what the execution has used by then', () => {
    const used = { turns: 2, input_tokens: 30, output_tokens: 4, cost_usd: 0.5 }
    expect(endBy({ ...RUNNING, ...used }, { type: 'executor_died', executor: 7, ms: 0 })).to.include(used)
  })

  it('D34.2: one that may begin anew is left to another executor for 30 s', () => {
    const keyed = { ...RUNNING, idempotency_key: 'k', has_acted: false }
    const afterMs = (ms: number, more: Partial<Dispatch> = {}) =>
      endBy({ ...keyed, ...more }, { type: 'executor_died', executor: 7, ms })?.error?.code
    expect([afterMs(30_000), afterMs(30_001)]).to.deep.equal([undefined, 'worker_lost'])
    for (const more of [{ has_acted: true }, { idempotency_key: null }, { starts: 2 }])
      expect(afterMs(0, more)).to.equal('worker_lost')
  })

  it('D34.2: only under the executor that has it one is taken over, or noted to act', () => {
    const keyed = { ...RUNNING, idempotency_key: 'k', has_acted: false }
    const moved = after({ ...QUEUED, ...begunBy(7), idempotency_key: 'k' }, takeOver({ from: 7, executor: 9 }))
    expect(moved).to.deep.include({ executor: 9, starts: 2 })
    expect([numbersBefore(keyed), numbersBefore(moved)]).to.deep.equal([0, 1_000_000])
    expect(noteAction(7)(keyed)).to.deep.include({ has_acted: true })
    for (const change of [takeOver({ from: 8, executor: 9 }), noteAction(8)]) expect(change(keyed)).to.equal(undefined)
  })

  it('D34.2: one that may begin anew is cancelled under its dead executor, and none that is lost', () => {
    const keyed = { ...RUNNING, idempotency_key: 'k', has_acted: false }
    const cancel = (executor: number | null, more: Partial<Dispatch> = {}) =>
      endBy({ ...keyed, ...more }, { type: 'cancelled', executor })?.error?.code
    expect([cancel(7), cancel(8), cancel(null), cancel(7, { has_acted: true })]).to.deep.equal([
      'cancelled',
      undefined,
      undefined,
      undefined,
    ])
  })

  it('a queued one belongs to nobody, a running one to its executor, and an ended one to nobody again', () => {
    const holders = (dispatch: Dispatch) => [null, 7, 8].filter((executor) => isHeldBy(dispatch, executor))
    expect(Object.values(STATES).map(holders)).to.deep.equal([[null], [7], [], [], [], []])
    expect(Object.values(STATES).filter(isEnded)).to.have.length(4)
  })
})

describe('an execution without a result of its own', () => {
  const ended = (fields: object) => queuedDispatch(0, { status: 'error', ...fields })

  it('is one that was refused, was lost with its executor, or that the server had no room for', () => {
    expect(isLost(ended({ status: 'rejected' }))).to.equal(true)
    expect(
      isLost(ended({ error: { status: 502, type: 'upstream_error', message: '', code: 'worker_lost' } })),
    ).to.equal(true)
    expect(isLost(ended({ error: failureOf('worker_draining', '') }))).to.equal(true)
    expect(isLost(ended({ error: failureOf('storage_unavailable', '') }))).to.equal(true)
  })

  it('is none that its provider failed, that was cancelled, or that has answered', () => {
    expect(isLost(ended({ error: FAILED.error }))).to.equal(false)
    expect(isLost(ended({ error: failureOf('cancelled', '') }))).to.equal(false)
    expect(isLost(ended({ status: 'ok' }))).to.equal(false)
    expect(isLost(queuedDispatch(0))).to.equal(false)
  })
})
