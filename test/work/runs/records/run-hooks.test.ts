import { expect } from 'chai'
import { errorEvent } from '../../../../shared/kernel/events.ts'
import { NO_METRICS } from '../../../../shared/kernel/metrics.ts'
import { linked } from '../../../../shared/kernel/trace.ts'
import { RunReporter } from '../../../../shared/work/runs/run-report.ts'
import { Runs } from '../../../../shared/work/runs/runs.ts'
import { SILENT_LOG } from '../../../support/silent-log.ts'
import { say, untilCancelled } from '../runs-setup.ts'
import { BATCH_MS, factsOf, runId, setUpRecorder, TENANT, useClock } from './setup.ts'

const log = SILENT_LOG

describe('the runs of a process and their records', () => {
  const pass = useClock()
  const setUp = () => {
    const { recorder, store } = setUpRecorder()
    const reporter = new RunReporter({ log, metrics: NO_METRICS, recorder })
    const runs = new Runs(
      { maxLive: 10, resumeMs: 60_000, maxJournalBytes: 1e6 },
      { onBug: () => {}, onEvent: () => {}, onForgotten: () => {}, report: (run) => reporter.openRun(run) },
    )
    const open = (n: number, more: object = {}) =>
      runs.open({ id: runId(n), tenant: TENANT, sessionId: undefined, about: { title: 'hello' }, ...more })
    const among = (part?: 'live' | 'unrecorded') =>
      runs.list(TENANT, { limit: 10, ...(part && { among: part }) }).runs.map(({ run_id }) => run_id)
    return { runs, reporter, recorder, store, open, among }
  }

  it('D20.1: a run is live, then not recorded, then only known, and the record is what the run said last', async () => {
    const { runs, recorder, store, open, among } = setUp()
    const run = open(1)
    expect([among('live'), among('unrecorded')]).to.deep.equal([[runId(1)], []])
    await run.execute(say)
    expect([among('live'), among('unrecorded')]).to.deep.equal([[], [runId(1)]])
    await recorder.settled()
    expect([among('live'), among('unrecorded'), among()]).to.deep.equal([[], [], [runId(1)]])
    const record = store.records.get(runId(1))?.record
    const { ended_at, ...summary } = runs.get(TENANT, runId(1)).summary
    expect({ ...record, ended_at }).to.deep.equal({ ...summary, ended_at })
    expect(record).to.include({ kind: 'run', title: 'hello', code: 'ok', event_count: 2 })
  })

  it('a run that is cancelled before its turn is recorded as cancelled', async () => {
    const { recorder, store, open } = setUp()
    open(1, { sessionId: 's' }).cancel('cancelled')
    await recorder.settled()
    const record = store.records.get(runId(1))?.record
    expect(record).to.include({ status: 'cancelled', code: 'cancelled', kind: 'message', session_id: 's' })
  })

  it('a run of the engine that has thrown is recorded as failed', async () => {
    const { recorder, store, open } = setUp()
    await open(1).execute(async function* () {
      yield { type: 'turn_start', turn_number: 1, model: 'm' }
      throw new Error('a bug')
    })
    await recorder.settled()
    expect(store.records.get(runId(1))?.record).to.include({ status: 'failed', code: 'internal', event_count: 2 })
  })

  it('a run that another process goes on with is neither recorded here nor called lost when this one dies', async () => {
    const { runs, store, open } = setUp()
    const [moved] = [open(1), open(2)]
    await pass(250)
    expect(store.openRuns).to.deep.equal([runId(1), runId(2)])
    runs.release(moved)
    await pass(BATCH_MS)
    expect(store.openRuns).to.deep.equal([runId(2)])
    expect(store.records.size).to.equal(0)
  })

  it('a run that continues says what it is and has spent', async () => {
    const { open } = setUp()
    const run = open(1, { about: { title: 'hello', customer_id: 'ada' } })
    const ended = run.execute(untilCancelled)
    const { ended_at, status, ...summary } = run.summary
    expect({ ended_at, status }).to.deep.equal({ ended_at: null, status: 'running' })
    expect(summary).to.include({ kind: 'run', title: 'hello', customer_id: 'ada', turns: 0, input_tokens: 0 })
    expect(summary.code).to.equal(undefined)
    run.cancel('cancelled')
    await ended
  })

  it('a plan itself has no record, and each of its steps has one', async () => {
    const { reporter, recorder, store } = setUp()
    for (const [n, kind] of (['plan', 'step'] as const).entries()) {
      const report = reporter.open(factsOf(n, { kind }))
      report.note(errorEvent('internal', 'x'), { bytes: 1, isLast: true })
    }
    await recorder.settled()
    expect([...store.records.keys()]).to.deep.equal([runId(1)])
  })

  it('a record names the caller and the request that started the run', async () => {
    const { reporter, recorder, store } = setUp()
    linked({ subject: 'ada', request_id: 'req_1' }, () => reporter.open(factsOf(1))).note(errorEvent('internal', 'x'), {
      bytes: 1,
      isLast: true,
    })
    await recorder.settled()
    expect(store.records.get(runId(1))?.record).to.include({ subject: 'ada', request_id: 'req_1' })
  })
})
