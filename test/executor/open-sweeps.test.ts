import { expect } from 'chai'
import { startSweeps } from '../../services/executor/open-sweeps.ts'
import { createLog } from '../../shared/kernel/log.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import type { Job } from '../../shared/work/queue/port.ts'
import { until } from '../support/until.ts'
import { useOpening } from '../wiring/opening.ts'
import { record, step } from '../work/plans/plan-setup.ts'

type Parts = Parameters<typeof startSweeps>

describe('what an executor does from time to time', () => {
  const opening = useOpening()

  /** An executor beside others of which only number 8 lives. The plan of the store is executed by `executor`, and has no job. */
  async function start({ isHeld = true, hasPlans = true } = {}) {
    const store = await opening.store()
    const plan = record([step('a')])
    await store.plans.create(TENANT, plan)
    const added: Job[] = []
    const lines: string[] = []
    let restored = 0
    const queue = {
      add: async (job: Job) => void added.push(job),
      missing: async (_kind: string, ids: string[]) => ids,
    }
    const schedules = {
      async restore() {
        restored++
        throw new Error('the queue is away')
      },
    }
    const parts = {
      ...{
        store,
        queue,
        flows: { dispatches: store.dispatches, retentionDays: async () => 1 },
        tenantConfig: undefined,
      },
      fence: { isHeld: () => isHeld },
      log: createLog({ level: 'warn', write: (line) => lines.push(line) }),
    } as unknown as Parts[0]
    const membership = { executors: { isAlive: async () => false }, isMember: async () => false } as unknown as Parts[1]
    const stop = startSweeps(parts, membership, hasPlans ? { schedules } : undefined)
    opening.closing(stop)
    return { plan, added, lines, restored: () => restored }
  }

  it('D7.3: a plan without a job is queued as soon as it starts', async () => {
    const { plan, added } = await start()
    await until(() => added.length > 0, { what: 'the plan to be queued' })
    expect(added).to.deep.equal([{ kind: 'plan', tenant: TENANT, id: plan.plan_id }])
  })

  it('D12.2: the queue is told of the schedules at the start; one that does not answer is told again later', async () => {
    const { lines, restored } = await start()
    await until(() => lines.length > 0, { what: 'the failure to be logged' })
    expect([restored(), lines.join()]).to.satisfy(
      ([count, text]: [number, string]) => count === 1 && text.includes('could not be told of schedules'),
    )
  })

  it('P2: an executor that has lost its place does nothing of it', async () => {
    const { added, restored } = await start({ isHeld: false })
    const held = await start()
    await until(() => held.added.length > 0, { what: 'the other one to have swept' })
    expect([added, restored()]).to.deep.equal([[], 0])
  })

  it('without the plan queue no plan and no schedule is looked at', async () => {
    const { added, restored } = await start({ hasPlans: false })
    const other = await start()
    await until(() => other.added.length > 0, { what: 'the other one to have swept' })
    expect([added, restored()]).to.deep.equal([[], 0])
  })
})
