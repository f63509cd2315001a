import { expect } from 'chai'
import type { PlanRecord } from '../../../../shared/work/plans/port.ts'
import { StoredPlans } from '../../../../shared/work/plans/store/plans.ts'
import { watchStore } from '../../../contract/watched-store.ts'
import { useTestStore } from '../../../support/test-store.ts'
import { TENANT } from '../../flows/setup.ts'
import { record, step } from '../plan-setup.ts'

/** Together more than a process remembers of plans that nobody uses. */
const [PLANS, CHARS] = [6, 7_000_000]

describe('plans with long steps', () => {
  const opened = useTestStore()

  it('are read once as long as they are in use, however many, since an executor looks at each every second', async () => {
    const ids: string[] = []
    for (let i = 0; i < PLANS; i++) {
      const plan = record([{ ...step('a'), prompt: 'x'.repeat(CHARS) }])
      await new StoredPlans(opened.store).create(TENANT, plan)
      ids.push(plan.plan_id)
    }
    const { watched, operations } = watchStore(opened.store)
    const plans = new StoredPlans(watched)
    const inUse: (PlanRecord | undefined)[] = []
    for (const id of ids) inUse.push(await plans.get(TENANT, id))
    expect(operations.filter((each) => each === 'get plan_steps')).to.have.length(PLANS)
    operations.length = 0
    for (const id of ids) await plans.change(TENANT, id, (plan) => plan)
    expect(operations).to.deep.equal(Array(PLANS).fill('get plans'))
    expect(inUse.map((plan) => plan?.steps[0]?.prompt.length)).to.deep.equal(Array(PLANS).fill(CHARS))
  })
})
