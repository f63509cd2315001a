import { expect } from 'chai'
import { createAbsence, recordLostRuns } from '../../../../shared/work/runs/records/lost-runs.ts'
import { FakeStore, factsOf, OTHER, recordOf, runId, TENANT } from './setup.ts'

const NOW = new Date('2026-11-24T12:00:00.000Z')

describe('the runs of processes that have died', () => {
  const setUp = async (open: Record<string, number[][]>) => {
    const store = new FakeStore()
    let id = 0
    for (const [owner, groups] of Object.entries(open))
      for (const runs of groups) await store.addOpen({ id: `open_${id++}`, owner, runs: runs.map((n) => factsOf(n)) })
    const gone = new Set(['p1', 'p3'])
    const record = () =>
      recordLostRuns({
        store,
        isGone: async (owner) => gone.has(owner),
        retentionDays: async (tenant) => (tenant === OTHER ? 7 : 30),
        now: () => NOW,
      })
    return { store, gone, record }
  }

  it('D20.4: are each recorded once as lost, and those of the others stay open', async () => {
    const { store, record } = await setUp({ p1: [[1, 2], [3], [4], [5]], p2: [[6]], p3: [[7]] })
    expect(await record()).to.equal(6)
    expect(await record()).to.equal(0)
    expect(store.added.flat().map(({ record: { run_id } }) => run_id)).to.deep.equal([1, 2, 3, 4, 5, 7].map(runId))
    for (const { record: stored, events } of store.records.values()) {
      expect(stored).to.include({ status: 'failed', code: 'worker_lost', ended_at: NOW.toISOString(), event_count: 0 })
      expect(events).to.equal(undefined)
    }
    expect(store.openRuns).to.deep.equal([runId(6)])
  })

  it('D20.2: keep the record that they have', async () => {
    const { store, record } = await setUp({ p1: [[1, 2]] })
    await store.add([{ tenant: TENANT, record: recordOf(1), keptDays: 30 }])
    await record()
    expect(store.records.get(runId(1))?.record).to.include({ status: 'done', code: 'ok' })
    expect(store.records.get(runId(2))?.record).to.include({ code: 'worker_lost' })
  })

  it('are kept as long as their own tenant wants it', async () => {
    const { store, record } = await setUp({})
    const runs = [factsOf(1), factsOf(2, { tenant: OTHER })]
    await store.addOpen({ id: 'both', owner: 'p1', runs })
    await record()
    const kept = [...store.records.values()].map(({ tenant, keptDays }) => [tenant, keptDays])
    expect(kept).to.deep.equal([
      [TENANT, 30],
      [OTHER, 7],
    ])
  })

  it('stay open until they are recorded', async () => {
    const { store, record } = await setUp({ p1: [[1]] })
    store.failure = (method) => (method === 'add' ? new Error('away') : undefined)
    const failure = await record().catch((cause: unknown) => cause)
    expect(failure).to.have.property('message', 'away')
    expect(store.openRuns).to.deep.equal([runId(1)])
    store.failure = () => undefined
    expect(await record()).to.equal(1)
  })

  it('are stored one document at a time, so that no command grows with their number', async () => {
    const { store, record } = await setUp({ p1: [[1, 2], [3]] })
    await record()
    expect(store.added.map((batch) => batch.length)).to.deep.equal([2, 1])
  })
})

describe('the absence of a process', () => {
  const setUp = () => {
    const members = new Set(['p1'])
    const clock = { now: 0 }
    const isGone = createAbsence(
      async (owner) => members.has(owner),
      30_000,
      () => clock.now,
    )
    return { members, clock, isGone }
  }

  it('D20.4: is its death only after its time, however often it is looked at', async () => {
    const { members, clock, isGone } = setUp()
    expect(await isGone('p1')).to.equal(false)
    members.clear()
    for (const now of [10_000, 25_000, 39_999]) {
      clock.now = now
      expect(await isGone('p1'), `${now}`).to.equal(false)
    }
    clock.now = 40_000
    expect(await isGone('p1')).to.equal(true)
  })

  it('begins anew when it was a member in between', async () => {
    const { members, clock, isGone } = setUp()
    members.clear()
    await isGone('p1')
    clock.now = 20_000
    members.add('p1')
    expect(await isGone('p1')).to.equal(false)
    members.clear()
    clock.now = 40_000
    expect(await isGone('p1')).to.equal(false)
    clock.now = 69_999
    expect(await isGone('p1')).to.equal(false)
    clock.now = 70_000
    expect(await isGone('p1')).to.equal(true)
  })

  it('is that of each process by itself', async () => {
    const { clock, isGone } = setUp()
    await isGone('p2')
    clock.now = 30_000
    expect(await isGone('p3')).to.equal(false)
    expect(await isGone('p2')).to.equal(true)
  })
})
