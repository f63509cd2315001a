import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { COLLECTIONS } from '../../../services/wiring/collections.ts'
import type { Store } from '../../../shared/platform/store/port.ts'
import { openSqliteStore } from '../../../shared/platform/store/sqlite/sqlite.ts'
import type { Plans } from '../../../shared/work/plans/port.ts'
import { StoredPlans } from '../../../shared/work/plans/store/plans.ts'
import { claim, endStep, finish } from '../../../shared/work/plans/transitions.ts'
import { TENANT } from './execute-setup.ts'
import { by, record, START, step } from './plan-setup.ts'

const DAY_MS = 86_400_000

describe('how long plans are kept', () => {
  const clock = { ms: Date.parse(START) }
  let dir: string
  let store: Store
  let plans: Plans

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'agent-engine-plan-retention-'))
    store = await openSqliteStore({ file: join(dir, 'plans.db'), collections: COLLECTIONS, now: () => clock.ms })
    plans = new StoredPlans(store, { now: () => new Date(clock.ms) })
  })
  after(async () => {
    await store.close()
    await rm(dir, { recursive: true })
  })

  const create = async () => {
    const plan = record([step('a')])
    await plans.create(TENANT, plan)
    return plan.plan_id
  }
  const read = async (id: string) => {
    const plan = await new StoredPlans(store).get(TENANT, id) // Another process, which remembers nothing.
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
