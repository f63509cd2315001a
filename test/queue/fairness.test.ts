import { Queue } from 'bullmq'
import { expect } from 'chai'
import fc from 'fast-check'
import { createBullQueue } from '../../shared/queue/bullmq.ts'
import { takeRound } from '../../shared/queue/bullmq-scripts.ts'
import { FairOrder } from '../../shared/queue/fair-order.ts'
import type { Job } from '../../shared/queue/port.ts'
import type { TenantId } from '../../shared/tenant.ts'
import { useRedis } from '../support/redis.ts'

const [A, B, C] = ['a', 'b', 'c'] as TenantId[] as [TenantId, TenantId, TenantId]
let lastId = 0
const newJob = (tenant: TenantId): Job => ({ kind: 'plan', tenant, id: `plan_${++lastId}` })

describe('turns of tenants in a queue within one process', () => {
  const push = (order: FairOrder, tenant: TenantId): Job => {
    const job = newJob(tenant)
    order.push({ job, addedAt: 0 })
    return job
  }

  it('lets a tenant wait for at most two jobs of another one, and keeps the order of each tenant', () => {
    const actions = fc.array(fc.oneof(fc.constantFrom('take' as const), fc.constantFrom(A, B, C)), { maxLength: 200 })
    fc.assert(
      fc.property(actions, (list) => {
        const order = new FairOrder()
        const waiting = new Map<TenantId, Job[]>([A, B, C].map((tenant) => [tenant, []]))
        /** For each tenant that waits: the jobs of others that were taken meanwhile. */
        const passed = new Map<TenantId, TenantId[]>()
        const take = () => {
          const job = order.take()?.job
          if (!job) return expect([...waiting.values()].flat()).to.deep.equal([])
          expect(job).to.equal(waiting.get(job.tenant)?.shift())
          passed.delete(job.tenant)
          for (const [tenant, jobs] of waiting) {
            if (jobs.length === 0 || tenant === job.tenant) continue
            const others = [...(passed.get(tenant) ?? []), job.tenant]
            passed.set(tenant, others)
            for (const other of others) expect(others.filter((each) => each === other).length).to.be.at.most(2)
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
    const order = new FairOrder()
    const [first, second] = [push(order, A), push(order, A)]
    order.push({ job: second, addedAt: 0 })
    order.remove(first.id)
    order.remove('unknown')
    expect([order.take()?.job, order.take()?.job]).to.deep.equal([second, undefined])
    push(order, B)
    order.clear()
    expect([order.size, order.take(), order.oldestAt]).to.deep.equal([0, undefined, undefined])
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

  it('near the limit of BullMQ the rounds begin anew, and the order of the waiting jobs stays', async () => {
    const queue = open()
    const limit = 20
    const jobs: Job[] = []
    const add = async (tenant: TenantId) => {
      const job = newJob(tenant)
      jobs.push(job)
      const priority = await takeRound(queue, job, limit)
      expect(priority).to.be.a('number')
      await queue.add('plan', { tenant }, { jobId: job.id, priority: Number(priority) })
      return Number(priority)
    }
    const waiting = () => redis.connect().zrange('ae:{plan}:plan:prioritized', '0', '-1')
    for (let i = 0; i < 12; i++) await add(A)
    for (let i = 0; i < 8; i++) await queue.remove(jobs.shift()?.id ?? '')
    for (let i = 0; i < 7; i++) await add(A)
    expect(await add(A)).to.be.below(limit) // It would have been the limit.
    expect(await waiting()).to.deep.equal(jobs.map(({ id }) => id))
    const order = await waiting()
    await add(B)
    expect(await waiting()).to.deep.equal([jobs.at(-1)?.id, ...order])
    const [first, last] = await Promise.all([order[0], order.at(-1)].map((id) => queue.getJob(id ?? '')))
    expect([first?.priority, (last?.priority ?? 0) < limit]).to.deep.equal([2, true])
  })

  it('the largest round is shared when one tenant has more jobs waiting than there are rounds', async () => {
    const queue = open()
    const rounds: unknown[] = []
    for (let i = 0; i < 6; i++) {
      const job = newJob(A)
      const priority = await takeRound(queue, job, 4)
      rounds.push(priority)
      await queue.add('plan', { tenant: A }, { jobId: job.id, priority: Number(priority) })
    }
    expect(rounds).to.deep.equal([1, 2, 3, 4, 4, 4])
  })

  it('the tenants of an empty queue are forgotten, so that the state does not grow', async () => {
    const queue = createBullQueue(redis.url)
    opened.push(queue)
    for (let i = 0; i < 30; i++) {
      const job = newJob(`tenant_${i}` as TenantId)
      await queue.add(job)
      await queue.add(newJob(A))
      for (const id of await redis.connect().zrange('ae:{plan}:plan:prioritized', '0', '-1'))
        await queue.remove({ ...job, id })
    }
    expect(await redis.connect().hlen('ae:{plan}:fair')).to.be.at.most(5)
  })
})
