import { expect } from 'chai'
import { AppError } from '../../shared/kernel/errors.ts'
import type { Store } from '../../shared/platform/store/port.ts'
import type { PlanRecord, PlanTransition } from '../../shared/work/plans/port.ts'
import { StoredPlans } from '../../shared/work/plans/store/plans.ts'
import { beginNextSteps, endStep, finish } from '../../shared/work/plans/transitions.ts'
import { aroundStore, isRead } from '../support/around-store.ts'
import { tenantId } from '../support/tenant.ts'
import { after, by, claim, DIAMOND, record, step } from '../work/plans/plan-setup.ts'

const TENANT = tenantId('t_1')
const LONG = DIAMOND.map((each) => ({ ...each, prompt: 'x'.repeat(2_000) }))
/** Of the writes of a creation the last one stores the plan. */
const CREATIONS = { 'of a short plan': { steps: DIAMOND, writes: 2 }, 'of a long plan': { steps: LONG, writes: 3 } }
const CRASHES = Object.entries(CREATIONS).flatMap(([what, { steps, writes }]) =>
  Array.from({ length: writes }, (_, i) =>
    [false, true].map((isDone) => ({ what, steps, writes, write: i + 1, isDone })),
  ),
)

/** The tests of plans whose process stops before or after one of its writes, or loses the answer to it. */
export function planCrashContract(opened: () => Store): void {
  for (const { what, steps, writes, ...crash } of CRASHES.flat())
    it(`a creation ${what} that stops ${crash.isDone ? 'after' : 'before'} its write ${crash.write} leaves a plan that a sweep finds, or none`, async () => {
      const plan = record(steps)
      const { plan_id } = plan
      await new StoredPlans(failingStore(opened(), crash)).create(TENANT, plan).catch(() => {})
      const plans = new StoredPlans(opened())
      const found = await plans.get(TENANT, plan_id)
      if (found) expect(found).to.deep.equal(plan)
      const active = (await plans.active(undefined)).map(({ planId }) => planId)
      if (found) expect(active).to.include(plan_id)
      expect(found !== undefined).to.equal(crash.write === writes && crash.isDone)
      expect(await plans.create(TENANT, plan)).to.equal(!found)
      expect(await plans.get(TENANT, plan_id)).to.deep.equal(plan)
    })

  const CHANGES: Record<string, { from: PlanRecord; transition: PlanTransition }> = {
    'a claim': { from: record(DIAMOND), transition: claim(by(7)) },
    'the end of a step': {
      from: after(record(DIAMOND), claim(by(7))),
      transition: (plan) => after(plan, endStep('a', by(7)), beginNextSteps(by(7))),
    },
    'the end of a plan': {
      from: after(record([step('a')]), claim(by(7)), endStep('a', by(7))),
      transition: finish(by(7)),
    },
  }
  for (const [what, { from, transition }] of Object.entries(CHANGES))
    for (const isDone of [false, true])
      it(`${what} whose write ${isDone ? 'has only lost its answer' : 'has failed'} is there whole or not at all`, async () => {
        const plan = { ...from, plan_id: record([]).plan_id }
        await new StoredPlans(opened()).create(TENANT, plan)
        const failing = new StoredPlans(failingStore(opened(), { write: 1, isDone }))
        const failure = await failing.change(TENANT, plan.plan_id, transition).catch((cause: unknown) => cause)
        expect(failure).to.be.instanceOf(AppError).and.include({ kind: 'unavailable' })
        const next = transition(plan)
        expect(await new StoredPlans(opened()).get(TENANT, plan.plan_id)).to.deep.equal(isDone ? next : plan)
        const again = await new StoredPlans(opened()).change(TENANT, plan.plan_id, (found) =>
          found.status === next?.status && isDone ? found : transition(found),
        )
        expect(again).to.deep.equal(next)
      })
}

/** A store of which one write fails, before it has happened or after, and all later ones. */
function failingStore(store: Store, { write, isDone }: { write: number; isDone: boolean }): Store {
  let writes = 0
  return aroundStore(store, async (method, act) => {
    if (isRead(method) || ++writes < write) return act()
    if (isDone && writes === write) await act()
    throw new AppError('unavailable', 'the process has died')
  })
}
