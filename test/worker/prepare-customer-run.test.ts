import { expect } from 'chai'
import { createLedger, type FinishedRun } from '../../shared/agent/customers/store/ledger.ts'
import { Lease } from '../../shared/cluster/members/lease.ts'
import { now } from '../../shared/cluster/members/moment.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { type AgentEvent, errorEvent } from '../../shared/kernel/events.ts'
import type { Collection, Store } from '../../shared/platform/store/port.ts'
import { ANSWER, fakeLedger, held, setUp } from './customer-run-setup.ts'
import { DONE } from './events.ts'

describe('the end of a customer’s run', () => {
  it('api.md Per-customer line: done comes after the entry is stored', async () => {
    for (const events of [[ANSWER, DONE], [[ANSWER, DONE]]]) {
      const stored = Promise.withResolvers<void>()
      const { ledger, written } = fakeLedger(() => stored.promise)
      const { next } = setUp({ ledger, events })
      expect((await next()).type).to.equal('text')
      const end = next()
      expect(written).to.deep.equal([])
      stored.resolve()
      expect(await end).to.equal(DONE)
      expect(written).to.deep.equal(['run_1'])
    }
  })

  it('api.md Per-customer line: the entry holds the prompt and the texts of the last turn', async () => {
    const runs: FinishedRun[] = []
    const { ledger } = fakeLedger(async (run) => void runs.push(run))
    const turn = (turn_number: number): AgentEvent => ({ type: 'turn_start', turn_number, model: 'm' })
    const events = [turn(1), ANSWER, turn(2), { type: 'text', text: 'one' }, { type: 'text', text: 'two' }, DONE]
    await setUp({ ledger, events: events as AgentEvent[] }).all()
    expect(runs).to.have.length(1)
    expect(runs[0]).to.include({ run_id: 'run_1', input: 'question', output: 'one\ntwo' })
  })

  it('api.md Per-customer line: a run that ends with plan_queued is recorded, a failed run is not', async () => {
    const { ledger, written } = fakeLedger()
    const queued = setUp({ ledger, events: [ANSWER, { type: 'plan_queued', note: 'no queue' }] })
    expect(await queued.all()).to.deep.equal(['text', 'plan_queued'])
    expect(written).to.deep.equal(['run_1'])
    const failed = setUp({ ledger, events: [ANSWER, errorEvent('timeout', 'too slow')] })
    expect(await failed.all()).to.deep.equal(['text', 'error'])
    expect(written).to.deep.equal(['run_1'])
  })

  it('P2: a run of a worker whose lease has expired is not written, and ends with worker_lost after the eviction', async () => {
    const { ledger, written } = fakeLedger()
    const { next, ending } = setUp({ ledger, lease: new Lease() })
    await next()
    const end = next()
    await new Promise(setImmediate)
    ending.abort('worker_lost')
    expect(await end).to.include({ type: 'error', code: 'worker_lost' })
    expect(written).to.deep.equal([])
  })

  it('P2: a run of a worker whose lease has expired is written when the lease is renewed', async () => {
    const lease = new Lease()
    const { ledger, written } = fakeLedger()
    const { next } = setUp({ ledger, lease })
    await next()
    const end = next()
    await new Promise(setImmediate)
    expect(written).to.deep.equal([])
    lease.renewed(now())
    expect(await end).to.equal(DONE)
    expect(written).to.deep.equal(['run_1'])
  })

  it('P2: a write that waits for the store is not sent after the run was aborted', async () => {
    const asked = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const { ledger, written } = fakeLedger(async ({ mayWriteUntil = () => 0 }) => {
      expect(mayWriteUntil() - performance.now()).to.be.within(1, 3_000)
      asked.resolve()
      await goOn.promise
      if (mayWriteUntil() < 0) throw new AppError('unavailable', 'too late')
    })
    const { next, ending } = setUp({ ledger })
    await next()
    const end = next()
    await asked.promise
    ending.abort('worker_lost')
    goOn.resolve()
    expect(await end).to.include({ type: 'error', code: 'worker_lost' })
    expect(written).to.deep.equal([])
  })

  it('a run whose entry cannot be stored ends with storage_unavailable instead of done', async () => {
    const { ledger } = fakeLedger(async () => {
      throw new AppError('unavailable', 'the store cannot be reached')
    })
    const { next } = setUp({ ledger })
    await next()
    expect(await next()).to.include({ type: 'error', code: 'storage_unavailable', retryable: true })
    expect((await next()).type).to.equal('nothing')
  })
})

/** A store with an empty collection. `writes` lists how long each insert may take, in ms. */
function fakeStore(insert = async () => {}) {
  const writes: (number | undefined)[] = []
  const collection = {
    page: async () => [],
    async insert(_tenant, _doc, options) {
      writes.push(options?.mayWriteUntil && options.mayWriteUntil() - performance.now())
      await insert()
      return true
    },
  } satisfies Partial<Collection>
  const store: Store = { collection: () => collection as unknown as Collection, awayMs: () => 0, close: async () => {} }
  return { store, writes }
}

describe('the lease of a worker that records a customer’s run', () => {
  it('P2: reaches the store, which refuses a write after its end', async () => {
    const { store, writes } = fakeStore()
    expect(await setUp({ ledger: createLedger(store) }).all()).to.deep.equal(['text', 'done'])
    expect(writes).to.have.length(1)
    expect(writes[0]).to.be.within(1, 3_000)
  })

  it('P2: is checked before every attempt: nothing is written after the fence has closed', async () => {
    const lease = held()
    const tried = Promise.withResolvers<void>()
    const { store, writes } = fakeStore(async () => {
      lease.renewed({ monotonic: -Infinity, wall: -Infinity }) // It has expired.
      tried.resolve()
      throw new AppError('unavailable', 'the store is unreachable')
    })
    const { all, ending } = setUp({ ledger: createLedger(store), lease })
    const types = all()
    await tried.promise
    ending.abort('worker_lost')
    expect(await types).to.deep.equal(['text', 'error'])
    expect(writes).to.have.length(1)
  })
})
