import { Queue } from 'bullmq'
import { expect } from 'chai'
import fc from 'fast-check'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { FairOrder } from '../../../shared/platform/fairness/fair-order.ts'
import { placeOf } from '../../../shared/work/queue/bullmq-scripts.ts'
import type { Job, StoredJob } from '../../../shared/work/queue/port.ts'
import { useRedis } from '../../support/redis.ts'

const [A, B, C] = ['a', 'b', 'c'] as TenantId[] as [TenantId, TenantId, TenantId]
let lastId = 0
const newJob = (tenant: TenantId): Job => ({ kind: 'plan', tenant, id: `plan_${++lastId}` })

describe('turns of tenants in a queue within one process', () => {
  const push = (order: FairOrder<StoredJob>, tenant: TenantId): Job => {
    const job = newJob(tenant)
    order.push({ job, addedAt: 0 })
    return job
  }

  const takeNext = (order: FairOrder<StoredJob>): Job | undefined => {
    const next = order.next()
    if (next) order.take(next)
    return next?.job
  }

  it('lets a tenant wait for at most one job of another one, and keeps the order of each tenant', () => {
    const actions = fc.array(fc.oneof(fc.constantFrom('take' as const), fc.constantFrom(A, B, C)), { maxLength: 200 })
    fc.assert(
      fc.property(actions, (list) => {
        const order = new FairOrder<StoredJob>()
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
    const order = new FairOrder<StoredJob>()
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
    const order = new FairOrder<StoredJob>()
    const [again, second, other] = [push(order, A), push(order, A), push(order, B)]
    expect(takeNext(order)).to.equal(again)
    order.push({ job: again, addedAt: 0 }, { isAgain: true })
    expect([takeNext(order), takeNext(order), takeNext(order)]).to.deep.equal([other, again, second])
  })

  it('goes on in turns when the tenants of an empty queue have been forgotten', () => {
    const order = new FairOrder<StoredJob>()
    for (let i = 0; i < 1_001; i++) push(order, `tenant_${i}` as TenantId)
    while (order.size > 0) takeNext(order)
    const jobs = [push(order, B), push(order, B), push(order, A)]
    expect([takeNext(order), takeNext(order), takeNext(order)]).to.deep.equal([jobs[0], jobs[2], jobs[1]])
  })
})

describe('turns of tenants in a queue on Redis', () => {
  const redis = useRedis()
  const opened: { close(): Promise<void> }[] = []
  afterEach(() => Promise.all(opened.splice(0).map((queue) => queue.close())))
  const open = () => {
    const queue = new Queue('plan', { connection: { url: redis.url }, prefix: 'ae:{plan}', skipVersionCheck: true })
    opened.push(queue)
    return queue
  }

  const add = async (queue: Queue, job: Job, maxPlace?: number) => {
    const place = await placeOf(queue, job, maxPlace)
    await queue.add('plan', { tenant: job.tenant }, { jobId: job.id, priority: Number(place) })
    return place
  }

  it('a tenant keeps its place, and after the last place that BullMQ allows the first one is given out again', async () => {
    const queue = open()
    const places: unknown[] = []
    for (const tenant of [A, B, A, C, B, 'd' as TenantId]) places.push(await add(queue, newJob(tenant), 3))
    expect(places).to.deep.equal([1, 2, 1, 3, 2, 1])
  })

  it('the tenants of an empty queue are forgotten, so that their places do not grow for ever', async () => {
    const queue = open()
    const [redisClient, job] = [redis.connect(), newJob(A)]
    for (let i = 0; i < 1_001; i++) await placeOf(queue, newJob(`tenant_${i}` as TenantId))
    await add(queue, job)
    expect(await redisClient.hlen('ae:{plan}:places')).to.be.below(10)
  })
})
