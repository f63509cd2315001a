import { expect } from 'chai'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { BATCH_MS, runId, setUpRecorder, useClock } from './setup.ts'

const AWAY = new AppError('unavailable', 'the store is away')
const OPEN_MS = 250

describe('the runs that a recorder stores as open', () => {
  const pass = useClock()

  it('are those that last 250 ms, several with one document, without their titles', async () => {
    const { store, begin } = setUpRecorder()
    begin(1)
    begin(2)
    begin(3).end()
    await pass(BATCH_MS)
    expect(store.open.size).to.equal(0)
    await pass(OPEN_MS - BATCH_MS)
    await pass(BATCH_MS)
    const [open = expect.fail(), ...more] = store.open.values()
    expect(more).to.deep.equal([])
    expect(open.owner).to.equal('p1')
    expect(open.runs.map(({ run_id }) => run_id)).to.deep.equal([runId(1), runId(2)])
    expect(open.runs[0]).to.include({ tenant: 't_1', kind: 'run' }).and.not.to.have.property('title')
  })

  it('are stored once, however long they last', async () => {
    const { store, begin } = setUpRecorder()
    begin(1)
    for (let i = 0; i < 8; i++) await pass(OPEN_MS)
    expect(store.tries).to.equal(1)
  })

  it('that begin one after the other are stored every 250 ms, and their documents are deleted together', async () => {
    const { store, begin } = setUpRecorder()
    const runs = []
    for (let n = 0; n < 15; n++) {
      runs.push(begin(n))
      await pass(50)
    }
    expect([...store.open.values()].map((open) => open.runs.length)).to.deep.equal([1, 5, 5])
    for (const { end } of runs.slice(0, 11)) end()
    await pass(BATCH_MS)
    const { tries } = store
    await pass(OPEN_MS)
    expect(store.openRuns).to.deep.equal([11, 12, 13, 14].map(runId))
    expect(store.tries - tries, 'one document is stored, and three are deleted').to.equal(2)
  })

  it('are no longer open when all runs of their document are recorded', async () => {
    const { store, begin } = setUpRecorder()
    const runs = [begin(1), begin(2)]
    await pass(OPEN_MS)
    runs[0]?.end()
    await pass(BATCH_MS)
    expect(store.openRuns, 'one of them goes on').to.deep.equal([runId(1), runId(2)])
    runs[1]?.end()
    await pass(BATCH_MS)
    await pass(OPEN_MS)
    expect(store.openRuns).to.deep.equal([])
    expect(store.records.size).to.equal(2)
  })

  it('are deleted only after their record is stored', async () => {
    const { store, begin } = setUpRecorder()
    const run = begin(1)
    await pass(OPEN_MS)
    store.failure = (method) => (method === 'add' ? AWAY : undefined)
    run.end()
    await pass(BATCH_MS)
    expect(store.openRuns).to.deep.equal([runId(1)])
    store.failure = () => undefined
    await pass(1_000)
    await pass(OPEN_MS)
    expect(store.openRuns).to.deep.equal([])
    expect(store.records.size).to.equal(1)
  })

  it('their document is deleted later when the store is away, and no record is stored twice', async () => {
    const { store, begin } = setUpRecorder()
    const run = begin(1)
    await pass(OPEN_MS)
    store.failure = (method) => (method === 'deleteOpen' ? AWAY : undefined)
    run.end()
    await pass(BATCH_MS)
    await pass(OPEN_MS)
    expect(store.tries, 'stored as open, recorded, not deleted').to.equal(3)
    expect(store.openRuns).to.deep.equal([runId(1)])
    store.failure = () => undefined
    await pass(1_000)
    expect(store.openRuns).to.deep.equal([])
    expect(store.added).to.have.length(1)
  })

  it('a document whose deletion fails for another reason than a store that is away is counted, and not tried again', async () => {
    const { store, begin, counts, lines } = setUpRecorder()
    const run = begin(1)
    await pass(OPEN_MS)
    store.failure = (method) => (method === 'deleteOpen' ? new Error('a bug') : undefined)
    run.end()
    await pass(BATCH_MS)
    await pass(OPEN_MS)
    expect(counts.left).to.equal(1)
    expect(lines).to.have.length(1)
    store.failure = () => undefined
    await pass(1_000)
    expect(store.deletions).to.equal(0)
  })

  it('a run that another process goes on with is no longer open here, and those beside it are', async () => {
    const { store, begin } = setUpRecorder()
    const [moved, other] = [begin(1), begin(2)]
    await pass(OPEN_MS)
    const [first] = store.open.keys()
    moved.recording.abandon()
    await pass(BATCH_MS)
    expect(store.openRuns).to.deep.equal([runId(2)])
    expect(store.open.has(first ?? '')).to.equal(false)
    other.end()
    await pass(BATCH_MS)
    await pass(OPEN_MS)
    expect(store.openRuns).to.deep.equal([])
    expect([...store.records.keys()]).to.deep.equal([runId(2)])
  })

  it('a run that is abandoned before its 250 ms is never open, nor recorded', async () => {
    const { store, begin } = setUpRecorder()
    begin(1).recording.abandon()
    await pass(OPEN_MS)
    expect(store.tries).to.equal(0)
  })

  it('a run that is abandoned while its document is being stored is not left behind in it', async () => {
    const { store, begin } = setUpRecorder()
    const [moved] = [begin(1), begin(2)]
    store.failure = (method) => {
      if (method === 'addOpen') moved.recording.abandon()
      store.failure = () => undefined
      return undefined
    }
    await pass(OPEN_MS)
    await pass(BATCH_MS)
    await pass(BATCH_MS)
    expect(store.openRuns).to.deep.equal([runId(2)])
  })

  it('are stored as soon as the store is back, but not those that have ended meanwhile', async () => {
    const { store, begin } = setUpRecorder()
    const [ended] = [begin(1), begin(2)]
    store.failure = (method) => {
      if (method === 'addOpen') ended.end()
      store.failure = () => undefined
      return AWAY
    }
    await pass(OPEN_MS)
    await pass(1_000)
    expect([...store.records.keys()]).to.deep.equal([runId(1)])
    expect(store.openRuns).to.deep.equal([runId(2)])
  })

  it('a bug of the store does not lose the runs that have ended, and is not repeated', async () => {
    const { store, begin, counts, lines } = setUpRecorder()
    store.failure = (method) => (method === 'addOpen' ? new Error('a bug') : undefined)
    const lasting = begin(1)
    await pass(OPEN_MS - BATCH_MS)
    begin(2).end()
    await pass(BATCH_MS)
    begin(3).end()
    await pass(BATCH_MS)
    expect([...store.records.keys()]).to.deep.equal([runId(2), runId(3)])
    expect(counts.lost).to.equal(0)
    expect(lines).to.have.length(1)
    lasting.end()
    await pass(BATCH_MS)
    expect(store.records.has(runId(1))).to.equal(true)
  })

  it('are stored 500 in a document at most', async () => {
    const { store, begin } = setUpRecorder()
    for (let n = 0; n < 501; n++) begin(n)
    await pass(OPEN_MS)
    await pass(OPEN_MS)
    expect([...store.open.values()].map(({ runs }) => runs.length)).to.deep.equal([500, 1])
  })

  it('10,000 of their documents wait for a store that is away, and those beyond them are counted and not deleted', async () => {
    const { recorder, store, begin, counts } = setUpRecorder()
    store.failure = () => AWAY
    begin(1)
    await pass(OPEN_MS)
    for (let tries = 1; tries < 10_003; tries++) await pass(1_000)
    expect(store.tries, 'each with a document of its own').to.equal(10_003)
    expect(counts.left).to.equal(3)
    store.failure = () => undefined
    await recorder.settled()
    expect(store.deletions).to.equal(10_000)
    expect(store.openRuns).to.deep.equal([runId(1)])
  })

  it('a run whose record was given up is not called lost later', async () => {
    const { store, begin } = setUpRecorder()
    const run = begin(1)
    await pass(OPEN_MS)
    store.failure = (method) => (method === 'add' ? new Error('a bug') : undefined)
    run.end()
    await pass(BATCH_MS)
    await pass(1_000)
    expect(store.openRuns).to.deep.equal([])
  })
})
