import { expect } from 'chai'
import { DEFAULT_TENANT as TENANT } from '../../../../shared/kernel/tenant.ts'
import { settle } from '../../../../shared/work/flows/calls/end-lost-execution.ts'
import type { Job } from '../../../../shared/work/queue/port.ts'
import { OK } from '../../../contract/dispatch-setup.ts'
import { useHistory } from '../history-setup.ts'

describe('settling an execution', () => {
  const history = useHistory()
  const removed: Job[] = []
  const added: Job[] = []
  let knownMs = 0
  let lostMs = 0
  beforeEach(() => {
    knownMs = 0
    lostMs = 0
  })

  const settleNow = (traceId: string, alive: readonly number[] = [7]) =>
    settle(TENANT, traceId, {
      dispatches: history.dispatches,
      executors: { isAlive: async (epoch) => alive.includes(epoch) },
      queue: { add: async (job) => void added.push(job), remove: async (job) => void removed.push(job) },
      knownMs,
      lostMs: () => lostMs,
    })

  it('leaves one alone that waits or runs', async () => {
    const { trace_id } = await history.queue()
    expect(await settleNow(trace_id)).to.equal('running')
    await history.dispatches.begin(TENANT, trace_id, 7)
    expect(await settleNow(trace_id)).to.equal('running')
    knownMs = 3_600_000
    expect(await settleNow(trace_id), 'however long it runs').to.equal('running')
  })

  it('returns one that has ended', async () => {
    const ended = await history.end(await history.queue())
    expect(await settleNow(ended.trace_id)).to.deep.equal(ended)
  })

  it('knows nothing of an unknown one', async () => {
    expect(await settleNow('trace_0')).to.equal(undefined)
  })

  it('ends one whose executor is dead, once, with 502', async () => {
    const { trace_id } = await history.queue()
    await history.dispatches.begin(TENANT, trace_id, 8)
    const [first, second] = await Promise.all([settleNow(trace_id), settleNow(trace_id)])
    expect(first).to.deep.equal(second)
    expect(first).to.deep.include({ status: 'error', served_instance: null })
    expect(first).to.have.nested.property('error.status', 502)
    const late = { executor: 8, result: OK }
    expect(await history.dispatches.end(TENANT, trace_id, late), 'the dead one wakes up').to.equal(undefined)
  })

  it('D34.2: leaves one that may begin anew to another executor, adds its job again, and ends it after 30 s', async () => {
    const { trace_id } = await history.queue({ idempotency_key: 'k' })
    await history.dispatches.begin(TENANT, trace_id, 8)
    const { length } = added
    expect(await settleNow(trace_id)).to.equal('running')
    expect(added.slice(length)).to.deep.equal([{ kind: 'flow', tenant: TENANT, id: trace_id }])
    lostMs = 30_001
    expect(await settleNow(trace_id)).to.have.nested.property('error.status', 502)
    added.length = length
  })

  it('adds the job of one that waits for long again, since it may be lost', async () => {
    const { trace_id } = await history.queue()
    knownMs = 4_000
    expect([await settleNow(trace_id), added.length]).to.deep.equal(['running', 0])
    knownMs = 4_001
    expect(await settleNow(trace_id)).to.equal('running')
    expect(added).to.deep.equal([{ kind: 'flow', tenant: TENANT, id: trace_id }])
    await history.dispatches.begin(TENANT, trace_id, 7)
    expect([await settleNow(trace_id), added.length], 'one that runs has a job').to.deep.equal(['running', 1])
  })

  it('ends one that no executor has taken for 30 s with 503, and takes it out of the queue', async () => {
    const { trace_id } = await history.queue()
    knownMs = 30_000
    expect(await settleNow(trace_id)).to.equal('running')
    knownMs = 30_001
    expect(await settleNow(trace_id)).to.have.nested.property('error.status', 503)
    expect(removed).to.deep.equal([{ kind: 'flow', tenant: TENANT, id: trace_id }])
    expect(await history.dispatches.begin(TENANT, trace_id, 7), 'an executor takes it all the same').to.equal(undefined)
  })
})
