import { expect } from 'chai'
import { createCustomerRuns } from '../../services/worker/customers.ts'
import type { Run } from '../../services/worker/run.ts'
import { Lease } from '../../shared/broker/placement/lease.ts'
import { LineCache } from '../../shared/customers/cache.ts'
import { type CustomerIdentity, CustomerLine } from '../../shared/customers/line.ts'
import { AppError } from '../../shared/errors.ts'
import type { AgentEvent } from '../../shared/events.ts'
import { createLog } from '../../shared/log.ts'
import type { FinishedRun } from '../../shared/store/ledger.ts'
import { DEFAULT_TENANT as tenant } from '../../shared/tenant.ts'
import { DONE } from './events.ts'

/** A run of one customer on a worker with this lease; `append` is what the store does. */
function setUp({ lease = new Lease(), append = async (_run: FinishedRun) => {} } = {}) {
  const written: string[] = []
  const ledger = {
    async append(_tenant: unknown, _customer: string, run: FinishedRun) {
      await append(run)
      written.push(run.run_id)
      return written.length
    },
    page: async () => ({ entries: [], next_cursor: null }),
    last: async () => [],
  }
  const memories = { last: async () => [], add: async () => ({ id: '', content: '', created_at: '' }) }
  const lines = new LineCache({ maxLines: 1, idleMs: -1 }, (who: CustomerIdentity) => {
    return new CustomerLine({ ledger, memories }, { entries: 1, chars: 100 }, who)
  })
  const startEngine = () =>
    async function* (): AsyncGenerator<AgentEvent> {
      yield { type: 'text', text: 'answer' }
      yield DONE
    }
  const log = createLog({ level: 'error', secrets: [], write: () => {} })
  const ending = new AbortController()
  const runs = createCustomerRuns({ startEngine, lines, fence: lease, log })
  const execute = runs({ prompt: 'question' }, { tenant, customerId: 'c', facilities: {} })
  const events = execute({ id: 'run_1' } as Run, ending.signal)[Symbol.asyncIterator]()
  const next = async () => ((await events.next()).value ?? { type: 'nothing' }) as AgentEvent
  return { next, written, ending }
}

const held = () => {
  const lease = new Lease()
  lease.renewed(performance.now())
  return lease
}

describe('a customer’s run at its end', () => {
  it('design §7.3: done comes when its entry is stored', async () => {
    const stored = Promise.withResolvers<void>()
    const { next, written } = setUp({ lease: held(), append: () => stored.promise })
    expect((await next()).type).to.equal('text')
    const end = next()
    expect(written).to.deep.equal([])
    stored.resolve()
    expect(await end).to.equal(DONE)
    expect(written).to.deep.equal(['run_1'])
  })

  it('P2: of a worker whose lease is over it is not written, and ends with worker_lost when others have its place', async () => {
    const { next, written, ending } = setUp()
    await next()
    const end = next()
    ending.abort('worker_lost')
    expect(await end).to.include({ type: 'error', code: 'worker_lost' })
    expect(written).to.deep.equal([])
  })

  it('P2: … and is written when the worker still has its place', async () => {
    const lease = new Lease()
    const { next, written } = setUp({ lease })
    await next()
    const end = next()
    lease.renewed(performance.now())
    expect(await end).to.equal(DONE)
    expect(written).to.deep.equal(['run_1'])
  })

  it('reliability.md rule 4: a write that waits for the store may no longer leave once the run is lost', async () => {
    const asked = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const { next, written, ending } = setUp({
      lease: held(),
      async append({ mayWriteMs = () => 0 }) {
        expect(mayWriteMs()).to.be.within(1, 1_000)
        asked.resolve()
        await goOn.promise
        if (mayWriteMs() === 0) throw new AppError('unavailable', 'too late')
      },
    })
    await next()
    const end = next()
    await asked.promise
    ending.abort('worker_lost')
    goOn.resolve()
    expect(await end).to.include({ type: 'error', code: 'worker_lost' })
    expect(written).to.deep.equal([])
  })

  it('issue 5.4: with a store that was lost it ends with storage_unavailable instead of done', async () => {
    const append = async () => {
      throw new AppError('unavailable', 'the store cannot be reached')
    }
    const { next } = setUp({ lease: held(), append })
    await next()
    expect(await next()).to.include({ type: 'error', code: 'storage_unavailable', retryable: true })
    expect((await next()).type).to.equal('nothing')
  })
})
