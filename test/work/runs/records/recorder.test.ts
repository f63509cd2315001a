import { expect } from 'chai'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { RunFigures } from '../../../../shared/work/runs/run-figures.ts'
import { tenantId } from '../../../support/tenant.ts'
import { BATCH_MS, DONE, factsOf, OTHER, runId, STEP_WAIT_MS, setUpRecorder, textOf, useClock } from './setup.ts'

const AWAY = new AppError('unavailable', 'the store is away')
const RETRY_MS = 1_000

describe('the recorder of runs', () => {
  const pass = useClock()

  it('D20.2: stores a run that ends alone at once, and those that end soon after it with one command', async () => {
    const { store, begin } = setUpRecorder()
    begin(0).end()
    await pass(1)
    expect(store.added.map((batch) => batch.length)).to.deep.equal([1])
    const runs = Array.from({ length: 99 }, (_, n) => begin(n + 1))
    for (const { end } of runs) end()
    await pass(BATCH_MS - 2)
    expect(store.added).to.have.length(1)
    await pass(2)
    expect(store.added.map((batch) => batch.length)).to.deep.equal([1, 99])
    expect(runs.every(({ recording }) => recording.isRecorded)).to.equal(true)
  })

  it('D20.2: stores a hundred without waiting for others, and none sooner than the next try while the store is away', async () => {
    const { store, begin } = setUpRecorder()
    const end = (from: number, to: number) => {
      for (let n = from; n < to; n++) begin(n).end()
    }
    end(0, 1)
    await pass(0)
    end(1, 101)
    await pass(0)
    expect(store.added.map((batch) => batch.length)).to.deep.equal([1, 100])
    store.failure = () => AWAY
    end(101, 201)
    await pass(0)
    expect(store.tries).to.equal(3)
    end(201, 401)
    await pass(RETRY_MS - 1)
    expect(store.tries).to.equal(3)
    store.failure = () => undefined
    await pass(1)
    expect(store.added.map((batch) => batch.length)).to.deep.equal([1, 100, 300])
  })

  it('D20.2: stores the steps of a plan that end one soon after the other with one command, at the latest with the next run', async () => {
    const { store, begin } = setUpRecorder()
    const endStep = (n: number) => begin(n, { kind: 'step' }).end()
    for (let n = 0; n < 4; n++) {
      endStep(n)
      await pass(STEP_WAIT_MS / 4 - 1)
    }
    expect(store.tries).to.equal(0)
    await pass(4)
    expect(store.added.map((batch) => batch.length)).to.deep.equal([4])
    endStep(4)
    await pass(STEP_WAIT_MS - 1)
    expect(store.tries).to.equal(1)
    begin(5).end()
    await pass(0)
    expect(store.added.map((batch) => batch.length)).to.deep.equal([4, 2])
    await pass(BATCH_MS)
    for (let n = 6; n < 106; n++) endStep(n)
    await pass(0)
    expect(store.added.map((batch) => batch.length)).to.deep.equal([4, 2, 100])
  })

  it('D20.2: stores a step that ends while others are written, and one that waits when its process shuts down', async () => {
    const { recorder, store, begin } = setUpRecorder()
    begin(0).end()
    await pass(0)
    begin(1, { kind: 'step' }).end()
    await recorder.settled()
    expect([...store.records.keys()]).to.deep.equal([runId(0), runId(1)])
    store.failure = () => AWAY
    begin(2, { kind: 'step' }).end()
    await pass(STEP_WAIT_MS)
    store.failure = () => undefined
    await pass(RETRY_MS)
    expect(store.records.has(runId(2))).to.equal(true)
  })

  it('stores 500 at once and the others right after them', async () => {
    const { store, begin } = setUpRecorder()
    for (let n = 0; n < 501; n++) begin(n).end()
    await pass(BATCH_MS)
    await pass(BATCH_MS)
    expect(store.added.map((batch) => batch.length)).to.deep.equal([500, 1])
  })

  it('stores each run for its tenant, with its figures, its events and how long the tenant keeps it', async () => {
    const { recorder, store, begin } = setUpRecorder()
    const { recording, note, end } = begin(1, { tenant: OTHER })
    note(textOf('hello'))
    expect(recording.isReplayable).to.equal(false)
    end()
    await recorder.settled()
    expect(recording.isReplayable).to.equal(true)
    expect(recorder.begin(factsOf(2), new RunFigures(), { prompt: 'hi' }).request).to.deep.equal({ prompt: 'hi' })
    const [{ tenant, record, events, eventBytes, keptDays } = expect.fail()] = store.records.values()
    expect({ tenant, keptDays }).to.deep.equal({ tenant: OTHER, keptDays: 30 })
    const ended = { run_id: runId(1), status: 'done', code: 'ok', event_count: 2, input_tokens: 20, title: 'prompt 1' }
    expect(record).to.include(ended)
    expect(events?.map(({ seq, event }) => [seq, event])).to.deep.equal([
      [1, textOf('hello')],
      [2, DONE],
    ])
    expect(eventBytes).to.equal(200)
  })

  it('D20.3: stores neither the title nor the events and phases while the tenant keeps no payloads', async () => {
    const { recorder, store, begin } = setUpRecorder({ store_payloads: false, retention_days: 1 })
    const { recording, end } = begin(1)
    end()
    await recorder.settled()
    expect([recording.isRecorded, recording.isReplayable]).to.deep.equal([true, false])
    const [stored = expect.fail()] = store.records.values()
    expect(stored.record).not.to.have.property('title')
    expect(stored.events).to.equal(undefined)
    expect(stored.keptDays).to.equal(1)
  })

  it('D20.2: tries again every second while the store is away, and loses nothing', async () => {
    const { store, begin, counts, lines } = setUpRecorder()
    store.failure = () => AWAY
    const first = begin(1)
    first.end()
    await pass(BATCH_MS)
    const { tries } = store
    expect(tries).to.equal(1)
    begin(2).end()
    await pass(RETRY_MS)
    await pass(RETRY_MS)
    store.failure = () => undefined
    expect(first.recording.isRecorded).to.equal(false)
    await pass(RETRY_MS)
    expect([...store.records.keys()]).to.deep.equal([runId(1), runId(2)])
    expect(first.recording.isRecorded).to.equal(true)
    expect({ ...counts, lines }).to.deep.equal({ lost: 0, left: 0, lines: [] })
  })

  it('a run that ends while the store is away does not make the recorder ask it more often', async () => {
    const { store, begin } = setUpRecorder()
    store.failure = () => AWAY
    begin(0).end()
    await pass(BATCH_MS)
    for (let n = 1; n <= 20; n++) {
      begin(n).end()
      await pass(BATCH_MS)
    }
    expect(store.tries).to.be.at.most(2)
  })

  it('D20.2: keeps 10,000 runs for a store that is away, and drops and counts the oldest beyond them', async () => {
    const { recorder, store, begin, counts, lines } = setUpRecorder()
    store.failure = () => AWAY
    for (let n = 0; n < 10_000; n++) begin(n).end()
    await recorder.settled()
    expect(counts.lost).to.equal(0)
    for (let n = 10_000; n < 10_003; n++) begin(n).end()
    expect(counts.lost).to.equal(3)
    store.failure = () => undefined
    await recorder.settled()
    expect(store.records.size).to.equal(10_000)
    expect([...store.records.keys()][0]).to.equal(runId(3))
    expect(store.records.has(runId(10_002))).to.equal(true)
    expect(
      lines.map((line) => (JSON.parse(line) as { count: number }).count),
      'one line for all',
    ).to.deep.equal([3])
  })

  it('D20.2: beyond 10,000 the runs of the tenant that has most of them are dropped, and none of another tenant', async () => {
    const { recorder, store, begin } = setUpRecorder()
    store.failure = () => AWAY
    const small = tenantId('t_small')
    begin(0, { tenant: small }).end()
    for (let n = 1; n < 10_003; n++) begin(n).end()
    store.failure = () => undefined
    await recorder.settled()
    expect([0, 1, 2, 3, 4].map((n) => store.records.has(runId(n)))).to.deep.equal([true, false, false, false, true])
  })

  it('runs that end while a command of the store goes on count among the 10,000 when it fails', async () => {
    const { recorder, store, begin, counts } = setUpRecorder()
    for (let n = 0; n < 10_000; n++) begin(n).end()
    store.failure = (method) => {
      store.failure = () => undefined
      if (method === 'add') for (let n = 10_000; n < 10_002; n++) begin(n).end()
      return AWAY
    }
    await recorder.settled()
    expect(counts.lost).to.equal(2)
    expect(store.records.size).to.equal(10_000)
    expect(store.records.has(runId(1)), 'the oldest').to.equal(false)
  })

  it('a bug of the store loses the runs of its batch only, and says so', async () => {
    const { recorder, store, begin, counts, lines } = setUpRecorder()
    store.failure = () => {
      store.failure = () => undefined
      return new Error('a bug')
    }
    const lost = begin(0)
    lost.end()
    for (let n = 1; n < 501; n++) begin(n).end()
    await recorder.settled()
    expect([...store.records.keys()]).to.deep.equal([runId(500)])
    expect(counts.lost).to.equal(500)
    expect(lost.recording.isRecorded).to.equal(false)
    expect(lines).to.have.length(1)
    expect(JSON.parse(lines[0] ?? '')).to.include({ level: 'error', count: 500 })
  })

  it('gives the memory of the events back when a run is recorded, lost or abandoned', async () => {
    const { recorder, store, begin } = setUpRecorder()
    const MIB = 1024 * 1024
    /** Whether the events of one more run fit into the 64 MiB of the process, of which this takes one. */
    const fill = (from: number, count: number) =>
      Array.from({ length: count }, (_, i) => {
        const run = begin(from + i)
        run.note(textOf('x'), MIB - 100)
        return run
      })
    for (const { end } of fill(0, 64)) end()
    await recorder.settled()
    store.failure = () => new Error('a bug')
    for (const { end } of fill(100, 64)) end()
    await recorder.settled()
    store.failure = () => undefined
    for (const { recording } of fill(200, 64)) recording.abandon()
    for (const { end } of fill(300, 65)) end()
    await recorder.settled()
    const kept = (from: number) => [...store.records.values()].filter(({ record }) => record.run_id >= runId(from))
    expect(kept(0).filter(({ events }) => events)).to.have.length(128)
    expect(
      kept(300)
        .filter(({ events }) => !events)
        .map(({ record }) => record.run_id),
    ).to.deep.equal([runId(364)])
  })

  it('`settled` resolves when all is stored, and after three tries when the store is away', async () => {
    const { recorder, store, begin } = setUpRecorder()
    for (let n = 0; n < 1_001; n++) begin(n).end()
    await recorder.settled()
    expect(store.records.size).to.equal(1_001)
    store.failure = () => AWAY
    store.tries = 0
    begin(2_000).end()
    await recorder.settled()
    expect(store.tries).to.equal(3)
  })

  it('a run that ends after `settled` is recorded, too', async () => {
    const { recorder, store, begin } = setUpRecorder()
    store.failure = () => AWAY
    begin(1).end()
    await recorder.settled()
    store.failure = () => undefined
    begin(2).end()
    await pass(RETRY_MS)
    expect([...store.records.keys()]).to.deep.equal([runId(1), runId(2)])
  })

  it('runs are stored in the order in which they end', async () => {
    const { recorder, store, begin } = setUpRecorder()
    const [early, late] = [begin(2), begin(1)]
    early.end()
    late.end()
    await recorder.settled()
    expect(store.added.flat().map(({ record }) => record.run_id)).to.deep.equal([runId(2), runId(1)])
  })
})
