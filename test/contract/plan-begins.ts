import { expect } from 'chai'
import type { Store } from '../../shared/platform/store/port.ts'
import type { PlanRecord, StepState } from '../../shared/work/plans/port.ts'
import { StoredPlans } from '../../shared/work/plans/store/plans.ts'
import { endStep, giveBack, requestCancel } from '../../shared/work/plans/transitions.ts'
import { tenantId } from '../support/tenant.ts'
import { after, at, by, claim, DIAMOND, record, step } from '../work/plans/plan-setup.ts'
import { watchStore } from './watched-store.ts'

const TENANT = tenantId('t_begins')
const OTHER = tenantId('t_other')
const ODD_IDS = ['__proto__', 'constructor', ' ', '"', '\\', 'ä🙂']
const MANY = Array.from({ length: 12 }, (_, i) => step(`s${i}`))
const LONG = [{ ...step('a'), prompt: 'x'.repeat(5_000) }, step('b')]

/** The tests of plans that begin, which every store passes. */
export function planBeginContract(opened: () => Store): void {
  const create = async (plan: PlanRecord) => {
    await new StoredPlans(opened()).create(TENANT, plan)
    return plan
  }
  const stored = ({ plan_id }: PlanRecord) => new StoredPlans(opened()).get(TENANT, plan_id)

  const CASES: Record<string, PlanRecord> = {
    'with one first step': record(DIAMOND),
    'whose first step is the last one': record([step('b', 'a'), step('a')]),
    'with more first steps than may run': record(MANY, { parallel: true }),
    'with odd ids': record(
      ODD_IDS.map((id) => step(id)),
      { parallel: true },
    ),
    'with long steps': record(LONG),
  }
  for (const [what, plan] of Object.entries(CASES))
    it(`a plan ${what} begins with one command that reads nothing before, and is then what a claim makes of it`, async () => {
      const { plan_id, steps } = await create(plan)
      const { watched, operations } = watchStore(opened())
      const plans = new StoredPlans(watched)
      const begun = (await plans.begin(TENANT, plan_id, by(7))) ?? expect.fail('it did not begin')
      expect(operations.splice(0)).to.deep.equal(['update plans', ...(steps === LONG ? ['get plan_steps'] : [])])
      expect(begun).to.deep.equal(after(plan, claim({ ...by(7), recordsActions: true })))
      expect(await stored(plan)).to.deep.equal(begun)
      const { steps: _steps, ...head } = begun
      expect((await plans.heads(TENANT, [plan_id])).get(plan_id)).to.deep.equal(head)
      expect((await plans.list(TENANT, { status: 'running', limit: 200 })).plans).to.deep.include(head)
      operations.length = 0
      const next = await plans.change(TENANT, plan_id, endStep(begun.states.find(isRunning)?.id ?? '', by(7, 2)))
      expect(operations).to.deep.equal(['replace plans'])
      expect(await stored(plan)).to.deep.equal(next)
    })

  it('a plan that was given back begins again with its next steps, and keeps its first start', async () => {
    const plan = await create(record(DIAMOND))
    const plans = new StoredPlans(opened())
    await plans.begin(TENANT, plan.plan_id, by(7))
    const end = (running: PlanRecord) => after(running, endStep('a', by(7)), giveBack(by(7)))
    const back = (await plans.change(TENANT, plan.plan_id, end)) ?? expect.fail('it was not given back')
    const again = await new StoredPlans(opened()).begin(TENANT, plan.plan_id, by(8, 20))
    expect(again).to.deep.equal(after(back, claim({ ...by(8, 20), recordsActions: true })))
    expect(again).to.include({ starts: 1, started_at: at(1) })
  })

  it('of two executors that begin a plan, one succeeds', async () => {
    const [one, two] = [new StoredPlans(opened()), new StoredPlans(opened())]
    for (let round = 0; round < 10; round++) {
      const plan = await create(record(DIAMOND))
      const { plan_id } = plan
      const begun = await Promise.all([one.begin(TENANT, plan_id, by(7)), two.begin(TENANT, plan_id, by(8))])
      expect(begun.filter(Boolean)).to.have.length(1)
      expect(await stored(plan)).to.deep.equal(begun[0] ?? begun[1])
    }
  })

  it('a plan does not begin for another tenant, for a process that may not write, or after its cancel', async () => {
    const { watched, operations } = watchStore(opened())
    const plans = new StoredPlans(watched)
    const plan = await create(record(DIAMOND))
    const { plan_id } = plan
    expect(await plans.begin(TENANT, plan_id, by(7), () => false)).to.equal(undefined)
    expect(operations).to.deep.equal([])
    expect(await plans.begin(OTHER, plan_id, by(7))).to.equal(undefined)
    expect(await stored(plan)).to.deep.equal(plan)
    const cancelled = await new StoredPlans(opened()).change(TENANT, plan_id, requestCancel(at(1)))
    expect(await plans.begin(TENANT, plan_id, by(7))).to.equal(undefined)
    expect(await stored(plan)).to.deep.equal(cancelled)
  })

  it('a process that has created a plan knows it no longer as created once it has begun it', async () => {
    const plans = new StoredPlans(opened())
    const plan = record(DIAMOND)
    await plans.create(TENANT, plan)
    await plans.begin(TENANT, plan.plan_id, by(7))
    expect(plans.created(TENANT, plan.plan_id)).to.equal(undefined)
  })
}

const isRunning = ({ status }: StepState): boolean => status === 'running'
