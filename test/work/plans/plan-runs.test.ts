import { expect } from 'chai'
import { UNKNOWN } from '../../../shared/cluster/following/port.ts'
import { type QueuedRunSource, QueuePlaces } from '../../../shared/cluster/following/queue-places.ts'
import { newPlanId, planRunId, stepRunId } from '../../../shared/kernel/ids.ts'
import { createPlanRuns, createStepRuns } from '../../../shared/work/plans/plan-runs.ts'
import { useTestStore } from '../../support/test-store.ts'
import { OTHER, TENANT } from '../flows/setup.ts'
import { AT, EXECUTOR, executorOf, openProcess, type Process, stepOf } from './calls-setup.ts'

const NONE: QueuedRunSource = { find: async () => undefined }
const ALL_ALIVE = { isAlive: async () => true }
const CALL = { subject: 'ada' }

describe('the runs of plans', () => {
  const opened = useTestStore()
  let process: Process
  let runs: QueuedRunSource
  beforeEach(() => {
    process = openProcess(opened.store)
    runs = createPlanRuns({ plans: process.plans, now: () => new Date(AT) })
  })

  async function submit() {
    const { plan } = await process.calls.submit(TENANT, { steps: [stepOf('a')] }, CALL)
    const executor = executorOf(process.plans, TENANT, plan.id)
    return { id: plan.id, runId: planRunId(plan.id), executor }
  }

  it('are where their plans are', async () => {
    const { runId, executor } = await submit()
    expect(await runs.find(TENANT, runId)).to.deep.equal({ state: 'waiting', started_at: AT })
    await executor.begin()
    expect(await runs.find(TENANT, runId)).to.deep.equal({ state: 'at', epoch: EXECUTOR })
    await executor.beginStep('a')
    await executor.failStep('a', 'broken')
    await executor.finish()
    expect(await runs.find(TENANT, runId)).to.deep.equal({ state: 'ended', epoch: EXECUTOR })
  })

  it('D27.1: those of steps are where their plans are, while they are at work', async () => {
    const { id, executor } = await submit()
    const steps = createStepRuns({ plans: process.plans })
    const [first, again] = [0, 1].map((attempt) => stepRunId(id, { stepId: 'a', attempt }))
    expect(await steps.find(TENANT, first ?? '')).to.equal(undefined)
    await executor.begin()
    await executor.beginStep('a')
    expect(await steps.find(TENANT, first ?? '')).to.deep.equal({ state: 'at', epoch: EXECUTOR })
    for (const [tenant, runId] of [
      [OTHER, first],
      [TENANT, again],
      [TENANT, planRunId(id)],
    ] as const)
      expect(await steps.find(tenant, runId ?? '')).to.equal(undefined)
    await executor.failStep('a', 'broken')
    expect(await steps.find(TENANT, first ?? '')).to.equal(undefined)
  })

  it('are taken once for queued by the process that has queued them, and are found in the store after that', async () => {
    const { runId, executor } = await submit()
    expect(runs.takeCreated?.(OTHER, runId)).to.equal(undefined)
    const joined = new QueuePlaces([NONE, runs], ALL_ALIVE)
    expect(await joined.find({ tenant: TENANT, runId }, true)).to.deep.equal({ state: 'waiting', started_at: AT })
    expect(runs.takeCreated?.(TENANT, runId)).to.equal(undefined)
    await executor.begin()
    expect(await runs.find(TENANT, runId)).to.deep.equal({ state: 'at', epoch: EXECUTOR })
  })

  it('are unknown to other tenants, and without a plan', async () => {
    const { runId } = await submit()
    expect(await runs.find(OTHER, runId)).to.equal(undefined)
    expect(await runs.find(TENANT, planRunId(newPlanId()))).to.equal(undefined)
    expect(await runs.cancelWaiting?.(OTHER, runId)).to.equal(false)
  })

  it('are cancelled while they are queued, with their plan, and not later', async () => {
    const { id, runId } = await submit()
    expect(await runs.cancelWaiting?.(TENANT, runId)).to.equal(true)
    expect(await process.calls.get(TENANT, id)).to.include({ status: 'cancelled' })
    expect(await runs.find(TENANT, runId)).to.deep.equal({ state: 'ended', epoch: null, code: 'cancelled' })
    const begun = await submit()
    await begun.executor.begin()
    expect(await runs.cancelWaiting?.(TENANT, begun.runId)).to.equal(false)
    expect(await process.plans.get(TENANT, begun.id)).to.include({ is_cancel_requested: false })
  })

  it('are found beside those of other sources, each of which is asked in turn', async () => {
    const { runId } = await submit()
    const flow: QueuedRunSource = {
      find: async (_tenant, id) => (id === 'run_of_flow' ? { state: 'at', epoch: 1 } : undefined),
      cancelWaiting: async (_tenant, id) => id === 'run_of_flow',
    }
    const joined = new QueuePlaces([flow, runs], ALL_ALIVE)
    const [ofFlow, ofPlan] = [
      { tenant: TENANT, runId: 'run_of_flow' },
      { tenant: TENANT, runId },
    ]
    expect(await joined.find(ofFlow)).to.deep.equal({ state: 'at', epoch: 1 })
    expect(await joined.find(ofPlan)).to.deep.equal({ state: 'waiting', started_at: AT })
    expect(await joined.find({ tenant: TENANT, runId: planRunId(newPlanId()) })).to.equal(UNKNOWN)
    expect(await joined.cancelWaiting(ofFlow, undefined)).to.equal(true)
    expect(await joined.cancelWaiting(ofPlan, undefined)).to.equal(true)
    expect(await joined.cancelWaiting(ofPlan, undefined)).to.equal(false)
  })
})
