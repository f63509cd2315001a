// Tests bullmq.ts, bullmq-consume.ts and bullmq-worker.ts: the queue on a real Redis.

import { expect } from 'chai'
import { spawnChild } from '../../../scripts/local-services/child.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT, type TenantId } from '../../../shared/kernel/tenant.ts'
import { createBullQueue } from '../../../shared/work/queue/bullmq.ts'
import { type BullTimes, createBullConsume } from '../../../shared/work/queue/bullmq-consume.ts'
import { keyPrefixOf } from '../../../shared/work/queue/bullmq-redis.ts'
import type { Job } from '../../../shared/work/queue/port.ts'
import { queueContract, record } from '../../contract/queue.ts'
import { elapsedMs } from '../../support/elapsed.ts'
import { useRedis } from '../../support/redis.ts'
import { tenantIds } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'

/** Short times: with the real ones the job of a dead consumer is handled again after 10 to 16 s. */
const TIMES: BullTimes = { lockMs: 1_000, stalledMs: 300 }
/** Longer than an answer may take. */
const STALL_MS = 1_700
const CONSUMER = new URL('consumer-process.ts', import.meta.url).pathname
const [A, B] = tenantIds('a', 'b')
const job: Job = { kind: 'flow', tenant: DEFAULT_TENANT, id: 'trace_only' }

describe('queue on Redis', () => {
  const redis = useRedis()
  const consumeWith = (onProblem: (message: string, cause: unknown) => void = () => {}) =>
    createBullConsume({ url: redis.url, onProblem, times: TIMES })

  queueContract(async () => ({
    start: async () => ({ queue: createBullQueue(redis.url), consume: consumeWith() }),
    crashWithJob: () => crashWithJob(TIMES),
  }))

  async function crashWithJob(times: BullTimes, owner = ''): Promise<void> {
    const args = [CONSUMER, redis.url, JSON.stringify(times), owner]
    const env = { PATH: process.env['PATH'] ?? '' }
    const child = await spawnChild({ name: 'consumer', command: process.execPath, args, env })
    await child.line(/^took \{/m, 20_000)
    await child.kill('SIGKILL')
    await child.exited
  }

  it('the jobs of an owner that is known to be dead are handed out again at once, and those of others are not', async () => {
    const long: BullTimes = { lockMs: 600_000, stalledMs: 600_000 }
    const queue = createBullQueue(redis.url)
    await queue.add(job)
    await crashWithJob(long, '7')
    const { taken, consumer, waitFor } = await record(
      createBullConsume({ url: redis.url, onProblem() {}, times: long }),
    )
    for (const other of ['', '77', '8']) await consumer.reclaim(other)
    const later = { ...job, id: 'trace_later', reader: { gateway: 3, stream: 8, readsEnd: true } }
    await queue.add(later)
    await waitFor(1)
    expect(await consumer.owners()).to.include('7')
    await consumer.reclaim('7')
    await waitFor(2)
    expect(taken).to.deep.equal([later, job])
    await Promise.all([consumer.close(), queue.close()])
  })

  it('a job that comes alone costs Redis five scripts in four messages and one wait, and a new one of a known tenant four in three', async () => {
    const rarely: BullTimes = { lockMs: 600_000, stalledMs: 600_000 }
    const queue = createBullQueue(redis.url)
    const { consumer, waitFor } = await record(createBullConsume({ url: redis.url, onProblem() {}, times: rarely }))
    await queue.add(job)
    await waitFor(1)
    const client = redis.connect()
    let asked = 0
    const ask = (section: string) => {
      asked++
      return client.info(section)
    }
    const callsOf = async (command: string) => {
      const [, calls] = (await ask('commandstats')).match(new RegExp(`cmdstat_${command}:calls=(\\d+)`)) ?? []
      return Number(calls ?? 0)
    }
    const waiting = async () => (await ask('clients')).includes('blocked_clients:1')
    const isOver = async (id: string) => ++asked && (await client.keys(`*${id}*`)).length === 0
    await until(waiting, { what: 'the consumer to wait' })
    await until(() => isOver(job.id), { what: 'the end of the first job' })
    for (const [n, isNew] of [false, true].entries()) {
      const id = `trace_alone_${n}`
      await client.config('RESETSTAT')
      asked = 0
      await queue.add({ ...job, id }, { isNew })
      await waitFor(n + 2)
      await until(() => isOver(id), { what: 'the end of the job' })
      await until(waiting, { what: 'the consumer to wait again' })
      const [, reads] = (await ask('stats')).match(/total_reads_processed:(\d+)/) ?? []
      const messages = Number(reads) - asked
      expect(await callsOf('bzpopmin')).to.equal(1)
      const scripts = await callsOf('evalsha')
      expect(scripts).to.be.at.most(isNew ? 4 : 5)
      expect(messages, 'two scripts go together, and it waits').to.equal(scripts)
    }
    await Promise.all([consumer.close(), queue.close()])
  })

  it('a job is taken at once also after the consumer was woken in vain', async () => {
    const queue = createBullQueue(redis.url)
    const { consumer, taken, waitFor } = await record(consumeWith())
    const client = redis.connect()
    const waiting = async () => (await client.info('clients')).includes('blocked_clients:1')
    await until(waiting, { what: 'the consumer to wait' })
    const marker = `${keyPrefixOf('flow', {})}:flow:marker`
    for (let i = 0; i < 2; i++) {
      await client.zadd(marker, 0, '0')
      await until(async () => !(await client.exists(marker)) && waiting(), { what: 'the consumer to wait again' })
    }
    const since = elapsedMs()
    await queue.add(job)
    await waitFor(1)
    expect(taken).to.deep.equal([job])
    expect(elapsedMs() - since).to.be.lessThan(2_000) // BullMQ looks by itself after five seconds.
    await Promise.all([consumer.close(), queue.close()])
  })

  it('of many jobs each is taken with one message, together with the end of another one', async () => {
    const [queue, client] = [createBullQueue(redis.url), redis.connect()]
    for (let i = 0; i < 40; i++) await queue.add({ ...job, id: `trace_many_${i}` })
    await client.config('RESETSTAT')
    let taken = 0
    const handle = async () => {
      taken++
      await new Promise(setImmediate)
    }
    const consumer = await consumeWith()('flow', handle, { concurrency: 1, onGivenUp: handle })
    await until(() => taken === 40, { what: 'all jobs to be taken' })
    const [, reads] = (await client.info('stats')).match(/total_reads_processed:(\d+)/) ?? []
    expect(Number(reads)).to.be.lessThan(70) // One for each job, and those of the start.
    await Promise.all([consumer.close(), queue.close()])
  })

  it('a tenant has had its turn when its job was taken from an empty queue', async () => {
    const queue = createBullQueue(redis.url)
    const client = redis.connect()
    const [taken, first] = [[] as string[], Promise.withResolvers<void>()]
    const handle = async ({ id }: Job) => {
      taken.push(id)
      if (id === 'a1') await first.promise
    }
    const add = (tenant: TenantId, id: string) => queue.add({ kind: 'flow', tenant, id })
    await add(B, 'b1')
    const consumer = await consumeWith()('flow', handle, { concurrency: 1, onGivenUp: async () => {} })
    const waiting = async () => taken.length === 1 && (await client.info('clients')).includes('blocked_clients:1')
    await until(waiting, { what: 'the consumer to wait' })
    await add(A, 'a1')
    await until(() => taken.length === 2, { what: 'the job to be taken' })
    for (const [tenant, id] of [
      [A, 'a2'],
      [B, 'b2'],
    ] as const)
      await add(tenant, id)
    first.resolve()
    await until(() => taken.length === 4, { what: 'all jobs to be taken' })
    expect(taken).to.deep.equal(['b1', 'a1', 'b2', 'a2'])
    await Promise.all([consumer.close(), queue.close()])
  })

  /** Expects a 503 within two seconds. */
  async function expectRefusal(add: () => Promise<void>): Promise<void> {
    const since = elapsedMs()
    const cause = await add().catch((error: unknown) => error)
    expect(cause).to.be.instanceOf(AppError).and.include({ kind: 'unavailable', retryAfterSecs: 2 })
    expect(elapsedMs() - since).to.be.lessThan(2_000)
  }

  it('a job is refused within two seconds while Redis is suspended or dead, also by a queue that was never connected', async () => {
    const [queue, unused] = [createBullQueue(redis.url), createBullQueue(redis.url)]
    await queue.add(job)
    await redis.server.kill('SIGSTOP')
    await expectRefusal(() => queue.add({ ...job, id: 'a' }))
    await redis.server.kill('SIGKILL')
    await expectRefusal(() => queue.add({ ...job, id: 'b' }))
    await expectRefusal(() => unused.add({ ...job, id: 'c' }))
    await redis.server.restart()
    await until(
      () =>
        queue.add({ ...job, id: 'd' }).then(
          () => true,
          () => false,
        ),
      { what: 'the queue to be back' },
    )
    await Promise.all([queue.close(), unused.close()])
  })

  it('an answer that came while this process could not run is in time', async () => {
    const queue = createBullQueue(redis.url)
    await queue.add(job)
    const added = queue.add({ ...job, id: 'trace_stalled' }, { isNew: true })
    await new Promise(setImmediate) // It is on its way.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS)
    await added
    await queue.close()
  })

  it('queue and consumer close within five seconds while Redis is dead', async () => {
    const queue = createBullQueue(redis.url)
    await queue.add(job)
    const [first, second] = [await record(consumeWith()), await record(consumeWith())]
    await redis.server.kill('SIGKILL')
    const since = elapsedMs()
    await Promise.all([queue.close(), first.consumer.drain(), second.consumer.close()])
    expect(elapsedMs() - since).to.be.lessThan(5_000)
  })

  it('a consumer takes jobs again when Redis is back empty, and reports the outage once', async () => {
    const problems: string[] = []
    const queue = createBullQueue(redis.url)
    const { taken, consumer, waitFor } = await record(consumeWith((_message, cause) => problems.push(String(cause))))
    await queue.add(job)
    await waitFor(1)
    await redis.server.kill('SIGKILL')
    await until(() => problems.length > 0, { what: 'the outage to be reported' })
    await redis.server.restart()
    const after = { ...job, id: 'trace_after' }
    await until(
      () =>
        queue.add(after).then(
          () => true,
          () => false,
        ),
      { what: 'the queue to be back' },
    )
    await waitFor(2)
    expect(taken).to.deep.equal([job, after])
    expect(new Set(problems)).to.have.property('size', problems.length)
    await Promise.all([consumer.close(), queue.close()])
  })

  it('a consumer is not opened without Redis', async () => {
    await redis.server.kill('SIGKILL')
    const cause = await record(consumeWith()).catch((error: unknown) => error)
    expect(cause).to.be.instanceOf(Error)
  })

  it('Redis holds the tenant and the id of a job and nothing of an error, and nothing of a job that ended well', async () => {
    const queue = createBullQueue(redis.url)
    const problems: unknown[] = []
    const fail = async ({ id }: Job) => {
      if (id === job.id) throw new Error('sk-secret')
    }
    const consume = consumeWith((_message, cause) => problems.push(cause))
    const consumer = await consume('flow', fail, { concurrency: 1, onGivenUp: fail })
    await queue.add({ ...job, id: 'trace_good' })
    await queue.add(job)
    const client = redis.connect()
    await until(() => client.zcard('ae:{flow}:flow:failed'), { what: 'the job to have failed' })
    expect(await client.exists('ae:{flow}:flow:trace_good')).to.equal(0)
    const stored = await client.hgetall('ae:{flow}:flow:trace_only')
    expect(stored['data']).to.equal(JSON.stringify({ tenant: DEFAULT_TENANT }))
    expect(JSON.stringify(stored)).not.to.include('sk-secret')
    expect(String(problems[0])).to.include('sk-secret')
    expect(await client.hget('ae:{flow}:flow:meta', 'opts.maxLenEvents')).to.equal('1000')
    await Promise.all([consumer.drain(), queue.close()])
  })
})
