import { expect } from 'chai'
import { openExecutor } from '../../services/executor/open-executor.ts'
import { createFlows } from '../../services/wiring/create-flows.ts'
import { openLocalRunRecorder } from '../../services/wiring/run-records.ts'
import { ALWAYS_HELD } from '../../shared/cluster/members/fence.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import { createSchemaCheckers } from '../../shared/platform/schemas/checker.ts'
import { NO_EVENTS } from '../../shared/tenancy/events/port.ts'
import { MemoryQueue } from '../../shared/work/queue/memory.ts'
import { MemorySchedules } from '../../shared/work/queue/memory-schedules.ts'
import type { Consume } from '../../shared/work/queue/port.ts'
import { NO_TOOLS } from '../support/app-defaults.ts'
import { useOpening } from '../wiring/opening.ts'

const toolBox = { ...NO_TOOLS, tools: [] }

describe('an executor, as a process opens it', () => {
  const opening = useOpening()

  /** Opens it and returns the slots of each kind of job that it takes. */
  async function slotsOf(env: Record<string, string> = {}): Promise<Record<string, (number | undefined)[]>> {
    const store = await opening.store()
    const schemas = createSchemaCheckers()
    const queue = new MemoryQueue({ store: store.jobs, onProblem: () => {} })
    const schedules = new MemorySchedules({ queue, onProblem: () => {} })
    const events = NO_EVENTS
    const { log } = opening
    const opened = await openExecutor(opening.settings(env).executor, {
      ...{ store, events, queue, schedules, log, toolBox, fence: ALWAYS_HELD, metrics: NO_METRICS },
      flows: createFlows({ store, events, toolBox, schemas, configs: undefined }),
      tenantConfig: undefined,
      recorder: await openLocalRunRecorder({ store, tenantConfig: undefined, metrics: NO_METRICS, log }),
      isHeapHigh: () => false,
    })
    opening.closing(async () => {
      await opened.close()
      await schedules.close()
      await queue.close()
      await schemas.close()
    })
    const slots: Record<string, (number | undefined)[]> = {}
    const consume: Consume = async (kind, _handle, { concurrency, perTenant }) => {
      slots[kind] = [concurrency, perTenant]
      return { drain: async () => {}, close: async () => {}, owners: async () => [], reclaim: async () => {} }
    }
    const executors = { isAlive: async () => false }
    await opened.start(consume, { epoch: () => 7, announce: () => {}, executors, isMember: async () => true })
    return slots
  }

  it('D1.3 PLAN_QUEUE: takes flows, and where plans are queued also those and the ticks of schedules', async () => {
    expect(Object.keys(await slotsOf({ PLAN_QUEUE: 'false' }))).to.deep.equal(['flow'])
    expect(Object.keys(await slotsOf())).to.deep.equal(['flow', 'plan', 'schedule'])
  })

  it('D1.3 RUNS_PER_WORKER, RUNS_PER_TENANT: a plan counts as eight runs, and a tenant has the same share of both', async () => {
    const alone = await slotsOf({ RUNS_PER_WORKER: '80' })
    expect(alone).to.deep.equal({ flow: [80, 80], plan: [10, 10], schedule: [8, 8] })
    const shared = await slotsOf({ RUNS_PER_WORKER: '80', RUNS_PER_TENANT: '20' })
    expect(shared).to.deep.include({ flow: [80, 20], plan: [10, 2] })
  })

  it('the smallest executor takes a plan all the same, and a second one of another tenant where tenants have shares', async () => {
    expect((await slotsOf({ RUNS_PER_WORKER: '2' }))['plan']).to.deep.equal([1, 1])
    expect((await slotsOf({ RUNS_PER_WORKER: '2', RUNS_PER_TENANT: '1' }))['plan']).to.deep.equal([2, 1])
  })
})
