// Tests ../work/plans/store/active-plans.ts: what the plans of a tenant that have not ended may take.

import { expect } from 'chai'
import { AppError } from '../../shared/kernel/errors.ts'
import type { Store } from '../../shared/platform/store/port.ts'
import type { PlanRecord } from '../../shared/work/plans/port.ts'
import { StoredPlans } from '../../shared/work/plans/store/plans.ts'
import { requestCancel } from '../../shared/work/plans/transitions.ts'
import { tenantId } from '../support/tenant.ts'
import { until } from '../support/until.ts'
import { at, by, claim, record, START, step } from '../work/plans/plan-setup.ts'
import { watchStore } from './watched-store.ts'

const PLAN_BYTES = Buffer.byteLength(JSON.stringify([step('a')]))
const LIMITS = { maxPlans: 5, maxBytes: Infinity }

/** The tests of the limits on the plans of a tenant that have not ended, which every store passes. */
export function planLimitsContract(opened: () => Store): void {
  let tenants = 0
  const newTenant = () => tenantId(`t_limits_${++tenants}`)
  const open = (limits = LIMITS, store = opened(), now = () => new Date(START)) =>
    new StoredPlans(store, { limits, now })
  const newPlan = () => record([step('a')])

  const refusalOf = async (creation: Promise<boolean>): Promise<AppError> => {
    const failure = await creation.catch((cause: unknown) => cause)
    expect(failure).to.be.instanceOf(AppError).and.include({ kind: 'rate_limit', status: 429, retryAfterSecs: 10 })
    return failure as AppError
  }

  it('a tenant has at most so many plans that wait or run, in all processes; another tenant has its own', async () => {
    const [tenant, other] = [newTenant(), newTenant()]
    const processes = [open(), open()] as const
    const plans = Array.from({ length: LIMITS.maxPlans }, newPlan)
    for (const [i, plan] of plans.entries()) expect(await processes[i % 2 ? 0 : 1].create(tenant, plan)).to.equal(true)
    for (const plan of plans.slice(0, 2)) await processes[0].change(tenant, plan.plan_id, claim(by(7)))
    const refused = newPlan()
    for (const each of processes) {
      const { message } = await refusalOf(each.create(tenant, refused))
      expect(message).to.include('5 plans that wait or run').and.include('POST /plans/{id}/cancel')
    }
    expect(await processes[0].get(tenant, refused.plan_id)).to.equal(undefined)
    expect(await processes[0].create(other, newPlan())).to.equal(true)
  })

  it('a process that has found much room counts again when it has used a 64th of half of it, so that the limit holds', async () => {
    const tenant = newTenant()
    const { watched, operations } = watchStore(opened())
    const limits = { maxPlans: 128, maxBytes: Infinity }
    const processes = [open(limits, watched), open(limits, watched)]
    const created: boolean[] = []
    for (let i = 0; i < limits.maxPlans; i++)
      created.push((await processes[i % 2]?.create(tenant, newPlan())) ?? expect.fail())
    expect(created).to.deep.equal(Array(limits.maxPlans).fill(true))
    expect(operations.filter((each) => each === 'total active_plans')).to.have.length(limits.maxPlans)
    for (const each of processes) await refusalOf(each.create(tenant, newPlan()))
    const [roomy, without] = [newTenant(), open({ maxPlans: Infinity, maxBytes: Infinity }, watched)]
    operations.length = 0
    for (let i = 0; i < 5; i++) await without.create(roomy, newPlan())
    expect(operations.filter((each) => each === 'total active_plans')).to.have.length.below(5)
    const bytes = newTenant()
    const few = open({ maxPlans: Infinity, maxBytes: 128 * PLAN_BYTES }, watched)
    operations.length = 0
    for (let i = 0; i < 3; i++) await few.create(bytes, newPlan())
    expect(operations.filter((each) => each === 'total active_plans')).to.have.length(3)
  })

  it('a creation that finds no room again costs one read and no write', async () => {
    const tenant = newTenant()
    const { watched, operations } = watchStore(opened())
    const longPlan = () => record([{ ...step('a'), prompt: 'x'.repeat(PLAN_BYTES) }])
    const short = open({ maxPlans: 2, maxBytes: 2 * PLAN_BYTES - 1 }, watched)
    await short.create(tenant, newPlan())
    const few = open({ maxPlans: 1, maxBytes: Infinity }, watched)
    for (const refuse of [() => short.create(tenant, longPlan()), () => few.create(tenant, newPlan())]) {
      await refusalOf(refuse())
      operations.length = 0
      await refusalOf(refuse())
      expect(operations).to.deep.equal(['total active_plans'])
    }
  })

  it('their steps have at most so many bytes together, and a plan that fits is still taken', async () => {
    const tenant = newTenant()
    const plans = open({ maxPlans: Infinity, maxBytes: 3 * PLAN_BYTES })
    const twice = record([{ ...step('a'), prompt: 'x'.repeat(step('a').prompt.length + PLAN_BYTES) }])
    expect(await plans.create(tenant, twice)).to.equal(true)
    const { message } = await refusalOf(plans.create(tenant, { ...twice, plan_id: newPlan().plan_id }))
    expect(message)
      .to.include(`${3 * PLAN_BYTES} bytes`)
      .and.include('POST /plans/{id}/cancel')
    expect(await plans.create(tenant, newPlan())).to.equal(true)
    await refusalOf(plans.create(tenant, newPlan()))
  })

  it('characters count as the bytes of their JSON', async () => {
    const plans = open({ maxPlans: Infinity, maxBytes: 3_000 })
    const steps = (prompt: string) => record([{ ...step('a'), prompt }])
    await refusalOf(plans.create(newTenant(), steps('\u0001'.repeat(1_000))))
    await refusalOf(plans.create(newTenant(), steps('€'.repeat(1_000))))
    expect(await plans.create(newTenant(), steps('x'.repeat(1_000)))).to.equal(true)
  })

  it('creations at the same time in several processes never pass the limit, and do not all refuse each other', async () => {
    const tenant = newTenant()
    const processes = [open(), open(), open()]
    const creating = processes.flatMap((each) =>
      Array.from({ length: 20 }, () => each.create(tenant, newPlan()).catch((cause: AppError) => cause.kind)),
    )
    const created = await Promise.all(creating)
    expect(created.filter((each) => each === true).length).to.be.within(1, LIMITS.maxPlans)
  })

  it('a plan that ends gives its room back, and so does one that is refused', async () => {
    const tenant = newTenant()
    const plans = open()
    const first = newPlan()
    await plans.create(tenant, first)
    for (let i = 1; i < LIMITS.maxPlans; i++) await plans.create(tenant, newPlan())
    for (let i = 0; i < 3; i++) await refusalOf(plans.create(tenant, newPlan()))
    await plans.change(tenant, first.plan_id, requestCancel(at(1)))
    await until(() => plans.create(tenant, newPlan()).catch(() => false), { what: 'room for a plan' })
    await refusalOf(plans.create(tenant, newPlan()))
  })

  it('plans that end at about the same time give their room back with two commands, and before the process that has ended them counts', async () => {
    const tenant = newTenant()
    const { watched, operations } = watchStore(opened())
    const plans = open(LIMITS, watched)
    const all = Array.from({ length: LIMITS.maxPlans }, newPlan)
    for (const plan of all) await plans.create(tenant, plan)
    operations.length = 0
    await Promise.all(all.map(({ plan_id }) => plans.change(tenant, plan_id, requestCancel(at(1)))))
    expect(await plans.create(tenant, newPlan())).to.equal(true)
    expect(operations.filter((each) => each.startsWith('delete')).join()).to.match(
      /^deleteMany active_plans(,deleteMany active_plans)?$/,
    )
    expect(
      await plans.active(undefined).then((active) => active.filter((each) => each.tenant === tenant)),
    ).to.have.length(1)
  })

  it('a plan whose steps could not be stored takes no room', async () => {
    const tenant = newTenant()
    const plans = open({ maxPlans: 1, maxBytes: Infinity })
    const tooLong = record([{ ...step('a'), prompt: 'x'.repeat(9e6) }])
    expect(await plans.create(tenant, tooLong).catch((cause: AppError) => cause.status)).to.equal(413)
    expect(await plans.create(tenant, newPlan())).to.equal(true)
  })

  it('a process that dies while it creates a plan takes its room for ten minutes at most', async () => {
    const tenant = newTenant()
    const limits = { maxPlans: 1, maxBytes: Infinity }
    const { watched, failAt } = watchStore(opened())
    failAt('insert plans')
    const half = newPlan()
    expect(
      await open(limits, watched)
        .create(tenant, half)
        .catch(() => 'died'),
    ).to.equal('died')
    const plans = open(limits, opened(), () => new Date(Date.parse(START) + 600_001))
    await refusalOf(plans.create(tenant, newPlan()))
    await plans.retire(tenant, half.plan_id)
    expect(await plans.create(tenant, newPlan())).to.equal(true)
  })

  it('a plan that is created twice at the same time counts once, and is counted as long as it has not ended', async () => {
    const tenant = newTenant()
    const limits = { maxPlans: 2, maxBytes: Infinity }
    const plans = open(limits)
    const twice: PlanRecord = newPlan()
    // The first creation is refused after the second one has found its entry.
    const { watched, failAt } = watchStore(opened())
    failAt('insert plan_steps')
    const failing = open(limits, watched).create(tenant, twice)
    await Promise.all([failing.catch(() => {}), plans.create(tenant, twice)])
    expect(await plans.create(tenant, newPlan())).to.equal(true)
    await refusalOf(plans.create(tenant, newPlan()))
  })
}
