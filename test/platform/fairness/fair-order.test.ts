import { expect } from 'chai'
import fc from 'fast-check'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { FairOrder } from '../../../shared/platform/fairness/fair-order.ts'
import { tenantId, tenantIds } from '../../support/tenant.ts'

type Job = { tenant: TenantId; id: string }
type Waiting = { job: Job; addedAt: number }

const [A, B, C] = tenantIds('a', 'b', 'c')
let lastId = 0
const newJob = (tenant: TenantId): Job => ({ tenant, id: `job_${++lastId}` })

describe('the turns of tenants that wait', () => {
  const push = (order: FairOrder<Waiting>, tenant: TenantId): Job => {
    const job = newJob(tenant)
    order.push({ job, addedAt: 0 })
    return job
  }

  const takeNext = (order: FairOrder<Waiting>): Job | undefined => {
    const next = order.next()
    if (next) order.take(next)
    return next?.job
  }

  it('lets a tenant wait for at most one job of another one, and keeps the order of each tenant', () => {
    const actions = fc.array(fc.oneof(fc.constantFrom('take' as const), fc.constantFrom(A, B, C)), { maxLength: 200 })
    fc.assert(
      fc.property(actions, (list) => {
        const order = new FairOrder<Waiting>()
        const waiting = new Map<TenantId, Job[]>([A, B, C].map((tenant) => [tenant, []]))
        /** For each tenant that waits: the jobs of others that were taken meanwhile. */
        const passed = new Map<TenantId, TenantId[]>()
        const take = () => {
          const job = takeNext(order)
          if (!job) return expect([...waiting.values()].flat()).to.deep.equal([])
          expect(job).to.equal(waiting.get(job.tenant)?.shift())
          passed.delete(job.tenant)
          for (const [tenant, jobs] of waiting) {
            if (jobs.length === 0 || tenant === job.tenant) continue
            const others = [...(passed.get(tenant) ?? []), job.tenant]
            passed.set(tenant, others)
            for (const other of others) expect(others.filter((each) => each === other).length).to.be.at.most(1)
          }
        }
        for (const action of [...list, ...list.map(() => 'take' as const)]) {
          if (action === 'take') take()
          else waiting.get(action)?.push(push(order, action))
        }
        expect(order.size).to.equal(0)
      }),
    )
  })

  it('a removed job is not taken, one that is pushed twice is taken once, and nothing is left after a clear', () => {
    const order = new FairOrder<Waiting>()
    const [first, second] = [push(order, A), push(order, A)]
    order.push({ job: second, addedAt: 0 })
    order.remove(first.id)
    order.remove('unknown')
    expect([takeNext(order), takeNext(order)]).to.deep.equal([second, undefined])
    push(order, B)
    order.clear()
    expect([order.size, order.next(), order.oldestAt]).to.deep.equal([0, undefined, undefined])
  })

  it('a job that waits again is the first of its tenant, and takes no turn of another one', () => {
    const order = new FairOrder<Waiting>()
    const [again, second, other] = [push(order, A), push(order, A), push(order, B)]
    expect(takeNext(order)).to.equal(again)
    order.push({ job: again, addedAt: 0 }, { isAgain: true })
    expect([takeNext(order), takeNext(order), takeNext(order)]).to.deep.equal([other, again, second])
  })

  it('goes on in turns when the tenants of an empty queue have been forgotten', () => {
    const order = new FairOrder<Waiting>()
    for (let i = 0; i < 1_001; i++) push(order, tenantId(`tenant_${i}`))
    while (order.size > 0) takeNext(order)
    const jobs = [push(order, B), push(order, B), push(order, A)]
    expect([takeNext(order), takeNext(order), takeNext(order)]).to.deep.equal([jobs[0], jobs[2], jobs[1]])
  })

  it('takes those of tenants that come first where one of them waits, and all others only without', () => {
    const order = new FairOrder<Waiting>()
    const [first, second] = [push(order, A), push(order, B)]
    const next = (...tenants: TenantId[]) => order.next((tenant) => tenants.includes(tenant))?.job
    expect([next(B), next(A, B), next(C), next()]).to.deep.equal([second, first, first, first])
    expect([order.size, order.countOf(A), order.countOf(C), order.has(first.id)]).to.deep.equal([2, 1, 0, true])
  })

  it('knows since when the oldest one waits, whichever tenant it is of', () => {
    const order = new FairOrder<Waiting>()
    order.push({ job: newJob(A), addedAt: 20 })
    order.push({ job: newJob(B), addedAt: 10 })
    order.push({ job: newJob(B), addedAt: 30 })
    expect(order.oldestAt).to.equal(10)
  })
})
