import { expect } from 'chai'
import { createPrepareCustomerRun } from '../../services/worker/prepare-customer-run.ts'
import type { RunStart } from '../../services/worker/prepare-run.ts'
import type { Run } from '../../services/worker/run.ts'
import { Lease } from '../../shared/broker/placement/lease.ts'
import { LineCache } from '../../shared/customers/cache.ts'
import { type CustomerIdentity, CustomerLine } from '../../shared/customers/line.ts'
import { AppError } from '../../shared/errors.ts'
import { type AgentEvent, errorEvent } from '../../shared/events.ts'
import { createLog } from '../../shared/log.ts'
import { createLedger, type FinishedRun, type Ledger } from '../../shared/store/ledger.ts'
import type { Collection, Store } from '../../shared/store/port.ts'
import { DEFAULT_TENANT as tenant } from '../../shared/tenant.ts'
import { DONE } from './events.ts'

const ANSWER: AgentEvent = { type: 'text', text: 'answer' }

/** A ledger that calls `append` before it stores a run. `written` lists the stored runs. */
function fakeLedger(append = async (_run: FinishedRun) => {}) {
  const written: string[] = []
  const ledger: Ledger = {
    async append(_tenant, _customer, run) {
      await append(run)
      return written.push(run.run_id)
    },
    page: async () => ({ entries: [], next_cursor: null }),
    last: async () => [],
  }
  return { ledger, written }
}

type Setup = { ledger?: Ledger; lease?: Lease; events?: AgentEvent[]; maxLines?: number; hasLines?: boolean }

/** A run of customer `c` whose engine yields `events`. */
function setUp({ ledger = fakeLedger().ledger, lease = held(), events, maxLines = 1, hasLines = true }: Setup = {}) {
  const memories = { last: async () => [], add: async () => ({ id: '', content: '', created_at: '' }) }
  const lines = new LineCache({ maxLines, idleMs: -1 }, (customer: CustomerIdentity) => {
    return new CustomerLine({ ledger, memories }, { entries: 1, chars: 100 }, customer)
  })
  const starts: RunStart[] = []
  const prepared = {
    prompt: 'question',
    async *execute(_run: Run, start: RunStart) {
      starts.push(start)
      yield* events ?? [ANSWER, DONE]
    },
  }
  const log = createLog({ level: 'error', secrets: [], write: () => {} })
  const ending = new AbortController()
  const prepareCustomerRun = createPrepareCustomerRun({ lines: hasLines ? lines : undefined, fence: lease, log })
  const execute = prepareCustomerRun(prepared, { tenant, customerId: 'c', services: {} })
  const iterator = execute({ id: 'run_1' } as Run, ending.signal)[Symbol.asyncIterator]()
  const next = async () => ((await iterator.next()).value ?? { type: 'nothing' }) as AgentEvent
  const all = async () => {
    const types: string[] = []
    for (let event = await iterator.next(); !event.done; event = await iterator.next()) types.push(event.value.type)
    return types
  }
  return { next, all, ending, lines, starts, leave: () => iterator.return?.() }
}

function held(): Lease {
  const lease = new Lease()
  lease.renewed(performance.now())
  return lease
}

describe('the end of a customer’s run', () => {
  it('api.md Per-customer line: done comes after the entry is stored', async () => {
    const stored = Promise.withResolvers<void>()
    const { ledger, written } = fakeLedger(() => stored.promise)
    const { next } = setUp({ ledger })
    expect((await next()).type).to.equal('text')
    const end = next()
    expect(written).to.deep.equal([])
    stored.resolve()
    expect(await end).to.equal(DONE)
    expect(written).to.deep.equal(['run_1'])
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
    lease.renewed(performance.now())
    expect(await end).to.equal(DONE)
    expect(written).to.deep.equal(['run_1'])
  })

  it('P2: a write that waits for the store is not sent after the run was aborted', async () => {
    const asked = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const { ledger, written } = fakeLedger(async ({ mayWriteMs = () => 0 }) => {
      expect(mayWriteMs()).to.be.within(1, 1_000)
      asked.resolve()
      await goOn.promise
      if (mayWriteMs() === 0) throw new AppError('unavailable', 'too late')
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
      writes.push(options?.withinMs)
      await insert()
      return true
    },
  } satisfies Partial<Collection>
  const store: Store = { collection: () => collection as unknown as Collection, awayMs: () => 0, close: async () => {} }
  return { store, writes }
}

describe('the lease of a worker that records a customer’s run', () => {
  it('P2: reaches the store: the write is refused unless it leaves within a second', async () => {
    const { store, writes } = fakeStore()
    expect(await setUp({ ledger: createLedger(store) }).all()).to.deep.equal(['text', 'done'])
    expect(writes).to.have.length(1)
    expect(writes[0]).to.be.within(1, 1_000)
  })

  it('P2: is checked before every attempt: nothing is written after the fence has closed', async () => {
    const lease = held()
    const tried = Promise.withResolvers<void>()
    const { store, writes } = fakeStore(async () => {
      lease.renewed(-Infinity) // It has expired.
      tried.resolve()
      throw new AppError('unavailable', 'the store is away')
    })
    const { all, ending } = setUp({ ledger: createLedger(store), lease })
    const types = all()
    await tried.promise
    ending.abort('worker_lost')
    expect(await types).to.deep.equal(['text', 'error'])
    expect(writes).to.have.length(1)
  })
})

describe('the line of a customer’s run', () => {
  it('is held while the run goes on, and released at a good end', async () => {
    const { next, all, lines } = setUp({ maxLines: 0 })
    await next()
    expect(lines.size).to.equal(1)
    await all()
    expect(lines.size).to.equal(0)
  })

  it('is released after a failed run', async () => {
    const { all, lines } = setUp({ maxLines: 0, events: [errorEvent('timeout', 'too slow')] })
    expect(await all()).to.deep.equal(['error'])
    expect(lines.size).to.equal(0)
  })

  it('is released after a cancelled run', async () => {
    const { next, all, lines, ending } = setUp({ maxLines: 0, lease: new Lease() })
    await next()
    ending.abort('cancelled')
    expect(await all()).to.deep.equal(['error'])
    expect(lines.size).to.equal(0)
  })

  it('is released when the run is left before its end', async () => {
    const { next, leave, lines } = setUp({ maxLines: 0 })
    await next()
    await leave()
    expect(lines.size).to.equal(0)
  })

  it('is released after a run that could not read it', async () => {
    const { ledger } = fakeLedger()
    const last = () => Promise.reject(new AppError('unavailable', 'the store is away'))
    const { all, lines, starts } = setUp({ maxLines: 0, ledger: { ...ledger, last } })
    expect(await all()).to.deep.equal(['text', 'done'])
    expect(starts.map(({ warnings }) => warnings.map(({ code }) => code))).to.deep.equal([['customer_scope_fallback']])
    expect(lines.size).to.equal(0)
  })
})

describe('the start of a customer’s run', () => {
  it('api.md Per-customer line: has the background, and Dream reads the line', async () => {
    const { all, starts } = setUp()
    await all()
    const [start] = starts
    expect(start?.background).to.match(/first contact/)
    expect(start?.services.memory).to.be.instanceOf(CustomerLine)
    expect(start?.warnings).to.deep.equal([])
  })

  it('api.md Per-customer line: without a store the run is stateless, says so, and is not recorded', async () => {
    const { ledger, written } = fakeLedger()
    const { all, starts } = setUp({ ledger, hasLines: false })
    expect(await all()).to.deep.equal(['text', 'done'])
    const [start] = starts
    expect(start?.background).to.equal(undefined)
    expect(start?.services.memory).to.equal(undefined)
    expect(start?.warnings[0]?.detail).to.deep.equal({ customer_id: 'c' })
    expect(written).to.deep.equal([])
  })
})
