import { expect } from 'chai'
import { EXECUTOR_LOST } from '../../../shared/work/flows/transitions.ts'
import { isKept } from '../../harness/guarantee.ts'
import type { Fault } from '../scenarios/fault.ts'
import { type FlowAnswer, problemsOf } from '../scenarios/flows/call.ts'
import { type FlowEvidence, flowGuarantees } from '../scenarios/flows/judge.ts'
import type { FlowRecord } from '../scenarios/flows/records.ts'

const answer = (fields: Partial<FlowAnswer> = {}): FlowAnswer => ({
  ...{ url: '', gateway: 'gateway 1', input: { token: 't', ms: 1 }, key: 'k', isStream: false },
  ...{
    status: 200,
    code: undefined,
    message: undefined,
    traceId: 'trace_1',
    output: { token: 't' },
    isReplayed: false,
  },
  ...{ problems: [], from: 0, to: 100 },
  ...fields,
})

const record = (fields: Partial<FlowRecord> = {}): FlowRecord => ({
  ...{ trace_id: 'trace_1', status: 'ok', error: null, idempotency_key: 'k', input: { token: 't', ms: 1 } },
  output: { token: 't' },
  ...fields,
})

const { message } = EXECUTOR_LOST
const LOST = { status: 502, code: 'worker_lost', message, output: undefined }
const LOST_RECORD = { status: 'error', error: { type: 'upstream_error', message }, output: null } as const
const at = (...times: readonly number[]): Fault[] => times.map((time) => ({ from: time, until: time }))

/** The row that a good load has nothing to say about: no execution was lost. */
const QUIET = 'from a fault to the answers of executions that it cut off'

/** The titles of the broken rows, reduced to their first words. */
function brokenBy(evidence: Partial<FlowEvidence> & { answers?: FlowAnswer[] }): string[] {
  const { answers = [answer()], ...more } = evidence
  const guarantees = flowGuarantees({
    load: { answers, unserved: [], differences: [], replays: 0 },
    records: [record()],
    model: { countOf: () => 1 },
    faults: at(10, 20),
    isKilled: () => false,
    ...more,
  })
  const broken = guarantees.filter((each) => !isKept(each) && each.title !== QUIET)
  return broken.map(({ title }) => title.replaceAll(/ of \d+/g, ''))
}

describe('the judgement of a load of flows', () => {
  it('accepts answers that agree with their records', () => {
    expect(brokenBy({})).to.deep.equal([])
    const answers = [answer(), answer({ ...LOST, traceId: 'trace_2' })]
    const records = [record(), record({ ...LOST_RECORD, trace_id: 'trace_2', idempotency_key: null })]
    expect(brokenBy({ answers, records, model: { countOf: () => 2 } })).to.deep.equal([])
  })

  it('finds an answer that its record contradicts', () => {
    const differ = ['answers that differ from the record']
    expect(brokenBy({ records: [record({ output: { token: 'other' } })] })).to.deep.equal(differ)
    expect(brokenBy({ records: [record({ input: { token: 'other', ms: 1 } })] })).to.include(differ[0])
    expect(brokenBy({ records: [record(LOST_RECORD)] })).to.deep.equal(differ)
    expect(brokenBy({ records: [] })).to.include(differ[0])
    const lost = answer(LOST)
    expect(
      brokenBy({
        answers: [answer({ traceId: 'trace_2' }), lost],
        records: [record(), record({ trace_id: 'trace_2' })],
      }),
    ).to.include(differ[0])
  })

  it('finds what was served or sent twice, and what never ended', () => {
    const twice = [record(), record({ trace_id: 'trace_2' })]
    expect(brokenBy({ records: twice })).to.deep.equal(['keys that two executions served'])
    expect(brokenBy({ model: { countOf: () => 2 } }), 'it began anew').to.deep.equal([])
    expect(brokenBy({ model: { countOf: () => 3 } })).to.deep.equal(['prompts sent more often than they were executed'])
    const queued = record({ trace_id: 'trace_2', status: 'queued', idempotency_key: null })
    expect(brokenBy({ records: [record(), queued] })).to.deep.equal(['executions that did not end'])
  })

  it('finds calls without an answer, unless their gateway was killed', () => {
    const answers = [answer(), answer({ status: 0, traceId: '' })]
    expect(brokenBy({ answers })).to.deep.equal(['calls that a living gateway did not answer'])
    expect(brokenBy({ answers, isKilled: () => true })).to.deep.equal([])
    expect(brokenBy({ answers: [answer(), answer({ status: 500 })] })).to.include('answers other than 200, 502 and 503')
    expect(brokenBy({ answers: [answer(), answer({ ...LOST, traceId: '' })] })).to.deep.equal([
      'failures without a trace id',
    ])
  })

  it('finds a call with a key that was lost with its first executor', () => {
    const records = [record(), record({ ...LOST_RECORD, trace_id: 'trace_2' })]
    const answers = [answer(), answer({ ...LOST, traceId: 'trace_2', from: 0, to: 9_000 })]
    const lost = ['calls with a key that were lost with one fault']
    expect(brokenBy({ answers, records, faults: at(1_000, 9_001) })).to.deep.equal(lost)
    expect(brokenBy({ answers, records, faults: at(1_000, 6_000) })).to.deep.equal([])
  })

  it('measures from the end of the fault, or from the call where that came later', () => {
    const lost = [answer({ ...LOST, from: 0, to: 5_000 }), answer({ ...LOST, from: 4_000, to: 5_000 })]
    const guarantees = flowGuarantees({
      load: { answers: lost, unserved: [], differences: [], replays: 0 },
      records: [],
      model: { countOf: () => 0 },
      faults: [{ from: 500, until: 1_000 }, ...at(9_000)],
      isKilled: () => false,
    })
    expect(guarantees.find(({ title }) => title === QUIET)).to.include({ value: 4_000 })
    const anew = flowGuarantees({
      load: {
        answers: [answer({ input: { token: 't', ms: 500 }, to: 5_000 })],
        unserved: [],
        differences: [],
        replays: 0,
      },
      records: [],
      model: { countOf: () => 2 },
      faults: at(1_000),
      isKilled: () => false,
    })
    expect(
      anew.find(({ title }) => title === QUIET),
      'without the time that the model took',
    ).to.include({ value: 3_500 })
  })
})

describe('the frames of a flow’s stream', () => {
  const frames = (...all: [number, string][]) => problemsOf(all.map(([seq, event]) => ({ seq, event })))

  it('rise by one up to the terminal one, which may repeat the last number', () => {
    expect(frames([1, 'started'], [2, 'progress'], [3, 'result'])).to.deep.equal([])
    expect(frames([1, 'started'], [1, 'error'])).to.deep.equal([])
    expect(frames([0, 'error'])).to.deep.equal([])
    const anew = [
      { seq: 1, event: 'started' },
      { seq: 1_000_001, event: 'warning', data: { code: 'run_recovered' } },
    ]
    expect(problemsOf([...anew, { seq: 1_000_002, event: 'result' }])).to.deep.equal([])
  })

  it('are malformed with a hole, a repetition, two ends or none', () => {
    expect(frames([1, 'started'], [3, 'result'])).to.deep.equal(['frame 3 follows 1'])
    expect(frames([1, 'started'], [1, 'progress'], [2, 'result'])).to.deep.equal(['frame 1 follows 1'])
    expect(frames([1, 'result'], [2, 'error'])).to.deep.equal(['result is frame 1 of 2'])
    expect(frames([1, 'started'])).to.deep.equal(['started is frame 1 of 1'])
    expect(frames()).to.deep.equal(['no frame'])
  })
})
