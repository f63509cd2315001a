import { Queue } from 'bullmq'
import { expect } from 'chai'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { placeOf } from '../../../shared/work/queue/bullmq-scripts.ts'
import type { Job } from '../../../shared/work/queue/port.ts'
import { useRedis } from '../../support/redis.ts'
import { tenantId, tenantIds } from '../../support/tenant.ts'

const [A, B, C] = tenantIds('a', 'b', 'c')
let lastId = 0
const newJob = (tenant: TenantId): Job => ({ kind: 'plan', tenant, id: `plan_${++lastId}` })

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
    for (const tenant of [A, B, A, C, B, tenantId('d')]) places.push(await add(queue, newJob(tenant), 3))
    expect(places).to.deep.equal([1, 2, 1, 3, 2, 1])
  })

  it('the tenants of an empty queue are forgotten, so that their places do not grow for ever', async () => {
    const queue = open()
    const [redisClient, job] = [redis.connect(), newJob(A)]
    for (let i = 0; i < 1_001; i++) await placeOf(queue, newJob(tenantId(`tenant_${i}`)))
    await add(queue, job)
    expect(await redisClient.hlen('ae:{plan}:places')).to.be.below(10)
  })
})
