import { expect } from 'chai'
import { runIdOf } from '../../../../shared/kernel/ids.ts'
import { DEFAULT_TENANT as TENANT } from '../../../../shared/kernel/tenant.ts'
import { createFlowRuns } from '../../../../shared/work/flows/calls/flow-runs.ts'
import { useHistory } from '../history-setup.ts'

const NO_QUEUE = { add: async () => {}, remove: async () => {} }

describe('the runs of flows that wait for an executor', () => {
  const history = useHistory()

  it('D34.2: a run whose executor is dead is cancelled there, or taken over, and never both', async () => {
    const { dispatches } = history
    const runs = createFlowRuns({ dispatches, queue: NO_QUEUE })
    const { trace_id: id, started_at } = await history.queue({ idempotency_key: 'k' })
    await dispatches.begin(TENANT, id, 7)
    expect(await runs.find(TENANT, runIdOf(id))).to.deep.equal({
      state: 'at',
      epoch: 7,
      mayMove: { started_at },
    })
    expect(await runs.cancelWaiting?.(TENANT, runIdOf(id)), 'it is not queued').to.equal(false)
    const [isCancelled, taken] = await Promise.all([
      runs.cancelWaiting?.(TENANT, runIdOf(id), 7),
      dispatches.takeOver(TENANT, id, { from: 7, executor: 8 }),
    ])
    expect(isCancelled).to.equal(taken === undefined)
  })

  it('D54.8: one that has time shows its deadline while it waits, and keeps its job when it is cancelled, whose executor tells of its end', async () => {
    const { dispatches } = history
    const [removed, added]: [object[], object[]] = [[], []]
    const queue = {
      remove: async (job: object) => void removed.push(job),
      add: async (job: object) => void added.push(job),
    }
    const runs = createFlowRuns({ dispatches, queue })
    const { trace_id: id, started_at } = await history.queue({ deadline_at: '2030-01-01T00:00:00.000Z' })
    const waiting = { state: 'waiting', started_at, deadline_at: '2030-01-01T00:00:00.000Z' }
    expect(await runs.find(TENANT, runIdOf(id))).to.deep.equal(waiting)
    expect(await runs.cancelWaiting?.(TENANT, runIdOf(id))).to.equal(true)
    expect([removed, added]).to.deep.equal([[], []])
    const { trace_id: parked } = await history.queue({ deadline_at: '2030-01-01T00:00:00.000Z' })
    await dispatches.park(TENANT, parked, 1)
    expect(await runs.cancelWaiting?.(TENANT, runIdOf(parked))).to.equal(true)
    expect(added, 'its job is over while it waits for a vendor').to.deep.equal([
      { kind: 'batch', tenant: TENANT, id: parked },
    ])
  })

  it('D34.2: a cancelled run does not begin anew', async () => {
    const { dispatches } = history
    const runs = createFlowRuns({ dispatches, queue: NO_QUEUE })
    const { trace_id: id } = await history.queue({ idempotency_key: 'k' })
    await dispatches.begin(TENANT, id, 7)
    expect(await runs.cancelWaiting?.(TENANT, runIdOf(id), 7)).to.equal(true)
    expect(await dispatches.takeOver(TENANT, id, { from: 7, executor: 8 })).to.equal(undefined)
    expect(await runs.find(TENANT, runIdOf(id))).to.deep.equal({ state: 'ended', epoch: 7, code: 'cancelled' })
  })
})
