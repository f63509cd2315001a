import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { createBullQueue } from '../../shared/work/queue/bullmq.ts'
import { createBullConsume } from '../../shared/work/queue/bullmq-consume.ts'
import type { FailedJob, Job, JobQueue, QueueMonitor } from '../../shared/work/queue/port.ts'
import { elapsedMs } from '../support/elapsed.ts'
import { useRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { parsePage } from './prometheus-text.ts'
import { type TestOps, useOps } from './setup.ts'

const job: Job = { kind: 'plan', tenant: DEFAULT_TENANT, id: 'plan_1' }

const scrape = async ({ get }: TestOps) => parsePage(await (await get('/metrics')).text())

describe('the gauges and the page of a queue', () => {
  const open = useOps()
  const failure: FailedJob = {
    id: 'plan_1',
    tenant: DEFAULT_TENANT,
    reason: 'plan_1 failed',
    at: '2026-11-22T10:00:00.000Z',
  }
  const monitor = (counts: QueueMonitor['counts']): QueueMonitor => ({ counts, failures: () => [failure] })
  const fixed = monitor(async (kind) => ({ waiting: kind.length, active: 2, failed: 1, oldestWaitingMs: 1_500 }))

  it('/metrics shows the jobs by kind and state and the age of the oldest, and the queue is read once', async () => {
    const ops = await open()
    const read: string[] = []
    ops.watchQueue(
      monitor((kind) => {
        read.push(kind)
        return fixed.counts(kind)
      }),
    )
    const { types, value } = await scrape(ops)
    expect(types.get('agent_engine_queue_jobs')).to.equal('gauge')
    expect(value('agent_engine_queue_jobs{kind="plan",state="waiting"}')).to.equal(4)
    expect(value('agent_engine_queue_jobs{kind="flow",state="active"}')).to.equal(2)
    expect(value('agent_engine_queue_jobs{kind="schedule",state="failed"}')).to.equal(1)
    expect(value('agent_engine_queue_oldest_waiting_seconds{kind="plan"}')).to.equal(1.5)
    expect(read).to.deep.equal(['flow', 'plan', 'schedule', 'batch'])
  })

  it('/metrics leaves out a gauge that cannot be read, or not within a second, and shows the others', async () => {
    const ops = await open()
    const failing = [() => Promise.reject(new Error('away')), () => new Promise<never>(() => {})]
    for (const counts of failing) {
      ops.watchQueue(monitor(counts))
      const since = elapsedMs()
      const { types, samples, value } = await scrape(ops)
      expect(elapsedMs() - since).to.be.below(2_000)
      expect(types.get('agent_engine_queue_jobs')).to.equal('gauge')
      expect(samples.filter(({ name }) => name.startsWith('agent_engine_queue'))).to.deep.equal([])
      expect(value('agent_engine_events_total')).to.equal(0)
    }
  })

  it('/metrics counts the steps of plans by how they ended', async () => {
    const ops = await open()
    ops.metrics.countDivided('plan_steps', 'done')
    ops.metrics.countDivided('plan_steps', 'done')
    ops.metrics.countDivided('plan_steps', 'failed')
    const { types, value } = await scrape(ops)
    expect(types.get('agent_engine_plan_steps_total')).to.equal('counter')
    const of = (status: string) => value(`agent_engine_plan_steps_total{status="${status}"}`)
    expect(['done', 'failed', 'skipped'].map(of)).to.deep.equal([2, 1, 0])
  })

  it('/queues of a process without Redis is JSON with the counts and the failed jobs', async () => {
    const ops = await open({}, 'standalone')
    expect(await (await ops.get('/queues')).json()).to.deep.equal({ queues: [] })
    ops.watchQueue(fixed)
    const { queues } = (await (await ops.get('/queues')).json()) as { queues: object[] }
    const plans = { kind: 'plan', waiting: 4, active: 2, failed: 1, oldest_waiting_ms: 1_500, failures: [failure] }
    expect(queues).to.have.length(4).and.deep.include(plans)
    expect((await ops.get('/queues', { method: 'POST' })).status).to.equal(405)
    expect((await ops.get('/queues/api/queues')).status).to.equal(404)
  })
})

describe('the dashboard of the queues', () => {
  const redis = useRedis()
  const open = useOps()
  const queues: JobQueue[] = []
  afterEach(() => Promise.all(queues.splice(0).map((queue) => queue.close())))
  const openQueue = () => {
    const queue = createBullQueue(redis.url)
    queues.push(queue)
    return queue
  }
  type Board = { queues: { name: string; counts: Record<string, number>; jobs: Record<string, unknown>[] }[] }
  const boardOf = async (ops: TestOps, query = '') =>
    (await (await ops.get(`/queues/api/queues${query}`)).json()) as Board

  it('lists a failed plan with its ids and its reason, and nothing else of it', async () => {
    const queue = openQueue()
    const consume = createBullConsume({ url: redis.url, onProblem: () => {} })
    const reason = { failed: `${job.id} failed:\n step build${'x'.repeat(500)}` }
    const consumer = await consume('plan', async () => reason, { concurrency: 1, onGivenUp: async () => {} })
    await queue.add(job)
    await until(async () => (await queue.counts('plan')).failed === 1, { what: 'the plan to have failed' })
    await consumer.close()
    const board = await boardOf(await open({ redisUrl: redis.url }), '?activeQueue=plan&status=failed')
    expect(board.queues.map(({ name }) => name)).to.deep.equal(['flow', 'plan', 'schedule', 'batch'])
    const [, plans] = board.queues
    expect(plans?.counts['failed']).to.equal(1)
    expect(plans?.jobs[0]).to.deep.include({ id: 'plan_1', data: { tenant: DEFAULT_TENANT }, stacktrace: [] })
    const shown = String(plans?.jobs[0]?.['failedReason'])
    expect(shown)
      .to.match(/^plan_1 failed: step buildx+$/)
      .and.have.length(200)
  })

  it('changes nothing: every method but GET and HEAD is 405, whatever the path', async () => {
    const queue = openQueue()
    await queue.add(job)
    const ops = await open({ redisUrl: redis.url })
    const paths = ['/pause', '/plan/pause', '/plan/clean/failed', '/plan/empty', '/plan/plan_1/clean', '/plan/add']
    for (const path of paths) {
      for (const method of ['PUT', 'POST', 'PATCH', 'DELETE']) {
        const refused = await ops.get(`/queues/api/queues${path}`, { method })
        expect([refused.status, refused.headers.get('allow')], path).to.deep.equal([405, 'GET, HEAD'])
      }
    }
    expect(await queue.counts('plan')).to.deep.include({ waiting: 1 })
  })

  it('has a policy that admits this server only, and no link to another one', async () => {
    const ops = await open({ redisUrl: redis.url })
    for (const path of ['/queues', '/queues/', '/queues/queue/plan', '/queues/queue/plan/plan_1']) {
      const response = await ops.get(path)
      const html = await response.text()
      expect([response.status, response.headers.get('content-type')], path).to.deep.equal([
        200,
        'text/html; charset=utf-8',
      ])
      expect(response.headers.get('content-security-policy')).to.include("default-src 'none'").and.not.include('http')
      expect(html)
        .to.include('<base href="/queues/"')
        .and.not.match(/https?:|\/\/fonts/)
    }
    expect((await ops.get('/queues/no-such-path')).status).to.equal(404)
  })

  it('answers without the text of the error while Redis is away, and again when it is back', async () => {
    const ops = await open({ redisUrl: redis.url })
    await boardOf(ops)
    await redis.server.kill('SIGKILL')
    const since = elapsedMs()
    const away = await ops.get('/queues/api/queues')
    expect(elapsedMs() - since).to.be.below(10_000)
    expect([away.status, await away.json()]).to.deep.equal([500, { error: 'the queue cannot be read at the moment' }])
    expect((await ops.get('/livez')).status).to.equal(200)
    await redis.server.restart()
    await until(async () => (await ops.get('/queues/api/queues')).status === 200, { what: 'the board to be back' })
  })

  it('a scrape is answered within two seconds while Redis is suspended, without the gauges of the queue', async () => {
    const ops = await open({ redisUrl: redis.url })
    ops.watchQueue(openQueue())
    expect((await scrape(ops)).value('agent_engine_queue_jobs{kind="plan",state="waiting"}')).to.equal(0)
    await redis.server.kill('SIGSTOP')
    const since = elapsedMs()
    const { value } = await scrape(ops)
    expect(elapsedMs() - since).to.be.below(2_000)
    expect(value('agent_engine_queue_jobs{kind="plan",state="waiting"}')).to.be.NaN
    expect(value('agent_engine_events_total')).to.equal(0)
  })
})
