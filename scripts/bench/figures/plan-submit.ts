import { newPlanId } from '../../../shared/kernel/ids.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { Plans } from '../../../shared/work/plans/port.ts'
import { StoredPlans } from '../../../shared/work/plans/store/plans.ts'
import { newPlan } from '../../../shared/work/plans/transitions.ts'
import type { Bench } from '../bench.ts'
import type { Figure, Measured } from '../figure.ts'
import { median } from '../statistics.ts'
import { type BenchStore, measureInStores } from '../stores.ts'

const QUEUED = 10_000
const AT_ONCE = 100
const WARM_UP = 50
const START = Date.parse('2026-11-22T10:00:00Z')
const TENANT = 't_plans' as TenantId
const STEPS = ['a', 'b', 'c', 'd'].map((id, i, ids) => ({ id, prompt: `do ${id}`, depends_on: ids.slice(0, i) }))

/** Whether a submit takes longer behind many queued plans: in SQLite, and in the MongoDB of MONGODB_URL if set. */
export const planSubmit: Figure = {
  name: 'plan-submit',
  title: `a plan stored behind ${QUEUED} queued ones to one of the first`,
  goal: { atMost: 1.2 },
  unit: 'x',
  measure: (bench) => measureInStores(bench, compare),
}

/** Stores plans in an empty store and in a long one alternately, so that other work on the machine affects both. */
async function compare({ name, store, other }: BenchStore, bench: Bench): Promise<Measured> {
  const [empty, long] = [new StoredPlans(other), new StoredPlans(store)]
  for (let i = 0; i < QUEUED; i += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, () => create(long, i)))
    bench.signal.throwIfAborted()
  }
  const times: [number[], number[]] = [[], []]
  for (let round = -WARM_UP; round < bench.pick(500, 300); round += 1) {
    for (const [i, plans] of [empty, long].entries()) {
      const start = performance.now()
      await create(plans, QUEUED + round)
      if (round >= 0) times[i]?.push(performance.now() - start)
    }
    bench.signal.throwIfAborted()
  }
  const [first, last] = [median(times[0]), median(times[1])]
  return { value: last / first, detail: `${name} ${toUs(first)} us first, ${toUs(last)} us behind ${QUEUED}` }
}

const create = (plans: Plans, i: number): Promise<boolean> =>
  plans.create(
    TENANT,
    newPlan({ id: newPlanId(), subject: 'anonymous', steps: STEPS, at: new Date(START + i).toISOString() }),
  )

const toUs = (ms: number): string => (1000 * ms).toFixed(0)
