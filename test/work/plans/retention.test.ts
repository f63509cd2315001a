import { expect } from 'chai'
import type { Plans } from '../../../shared/work/plans/port.ts'
import { StoredPlans } from '../../../shared/work/plans/store/plans.ts'
import { endStep, finish } from '../../../shared/work/plans/transitions.ts'
import { useTestStore } from '../../support/test-store.ts'
import { TENANT } from './execute-setup.ts'
import { by, claim, record, START, step } from './plan-setup.ts'

const DAY_MS = 86_400_000

describe('how long plans are kept', () => {
  const clock = { ms: Date.parse(START) }
  const opened = useTestStore({ now: () => clock.ms })
  let plans: Plans

  before(() => {
    plans = new StoredPlans(opened.store, { now: () => new Date(clock.ms) })
  })

  const create = async () => {
    const plan = record([step('a')])
    await plans.create(TENANT, plan)
    return plan.plan_id
  }
  const read = async (id: string) => {
    const plan = await new StoredPlans(opened.store).get(TENANT, id) // Another process, which remembers nothing.
    return (
      plan && { status: plan.status, steps: plan.steps.length, outputs: (await plans.outputs(TENANT, id, ['a'])).size }
    )
  }

  it('is 30 days after their end, with their steps and outputs, and a year for those that never end', async () => {
    const [ended, waiting] = [await create(), await create()]
    await plans.change(TENANT, ended, claim(by(7)))
    await plans.saveOutput(TENANT, ended, 'a', 'x')
    await plans.change(TENANT, ended, endStep('a', by(7)))
    await plans.change(TENANT, ended, finish(by(7)))
    clock.ms += 29 * DAY_MS
    expect(await read(ended)).to.deep.equal({ status: 'done', steps: 1, outputs: 1 })
    clock.ms += 2 * DAY_MS
    expect(await read(ended)).to.equal(undefined)
    clock.ms += 330 * DAY_MS
    expect(await read(waiting)).to.deep.equal({ status: 'queued', steps: 1, outputs: 0 })
    const listed = await plans.list(TENANT, { limit: 10 })
    expect(listed.plans.map(({ plan_id }) => plan_id)).to.deep.equal([waiting])
    clock.ms += 5 * DAY_MS
    expect(await read(waiting)).to.equal(undefined)
  })
})
