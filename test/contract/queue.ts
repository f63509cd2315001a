import { expect } from 'chai'
import type { Consume, Job, JobConsumer, JobQueue } from '../../shared/queue/port.ts'
import { DEFAULT_TENANT, type TenantId } from '../../shared/tenant.ts'
import { until } from '../support/until.ts'

/** The queue as one process has it. */
export type QueueProcess = { queue: JobQueue; consume: Consume }

export type QueueSetup = {
  /** Starts a process. The one before it has ended, with or without a crash. */
  start(): Promise<QueueProcess>
  /** Lets a process take one job and die before its handler has ended. */
  crashWithJob(): Promise<void>
}

const OTHER = 'other' as TenantId
let lastId = 0
const newJob = (tenant = DEFAULT_TENANT): Job => ({ kind: 'flow', tenant, id: `trace_${++lastId}` })

/** A consumer that records the jobs. Its handlers end when `release` is called, if `holds` is set. */
export async function record(consume: Consume, { holds = false, concurrency = 2 } = {}) {
  const taken: Job[] = []
  const givenUp: Job[] = []
  const held = Promise.withResolvers<void>()
  const consumer = await consume(
    'flow',
    async (job) => {
      taken.push(job)
      if (holds) await held.promise
    },
    { concurrency, onGivenUp: async (job) => void givenUp.push(job) },
  )
  const waitFor = (count: number) =>
    until(() => taken.length >= count, { what: `${count} jobs`, lastSeen: () => taken, withinMs: 15_000 })
  return { taken, givenUp, consumer, waitFor, release: held.resolve }
}

/** The tests that every queue passes. */
export function queueContract(open: () => Promise<QueueSetup>): void {
  let setup: QueueSetup
  const consumers: JobConsumer[] = []
  const queues: JobQueue[] = []
  const start = async (): Promise<QueueProcess> => {
    const { queue, consume } = await setup.start()
    queues.push(queue)
    return {
      queue,
      async consume(...args) {
        const consumer = await consume(...args)
        consumers.push(consumer)
        return consumer
      },
    }
  }
  beforeEach(async () => {
    setup = await open()
  })
  afterEach(async () => {
    await Promise.all(consumers.splice(0).map((consumer) => consumer.close()))
    await Promise.all(queues.splice(0).map((queue) => queue.close()))
  })

  it('a job is handled once, with its tenant and id, whether it is added before or after the consumer has started', async () => {
    const { queue, consume } = await start()
    const [early, late] = [newJob(OTHER), newJob()]
    await queue.add(early)
    const { taken, waitFor, consumer } = await record(consume)
    await waitFor(1)
    await queue.add(late)
    await waitFor(2)
    await consumer.drain()
    expect(taken).to.deep.equal([early, late])
  })

  it('at most `concurrency` jobs are handled at the same time, and the others follow in their order', async () => {
    const { queue, consume } = await start()
    const jobs = [newJob(), newJob(), newJob()]
    const { taken, waitFor, release } = await record(consume, { holds: true })
    for (const job of jobs) await queue.add(job)
    await waitFor(2)
    expect(taken).to.deep.equal(jobs.slice(0, 2))
    release()
    await waitFor(3)
    expect(taken).to.deep.equal(jobs)
  })

  it('a job whose handler throws is over', async () => {
    const { queue, consume } = await start()
    let calls = 0
    const fail = async () => {
      calls++
      throw new Error('failed')
    }
    await queue.add(newJob())
    const first = await consume('flow', fail, { concurrency: 1, onGivenUp: fail })
    await until(() => calls === 1, { what: 'the handler to be called' })
    await first.drain()
    const { queue: next, consume: consumeAgain } = await start()
    const { taken, waitFor } = await record(consumeAgain)
    const marker = newJob()
    await next.add(marker)
    await waitFor(1)
    expect(taken).to.deep.equal([marker])
  })

  it('a removed job is not handled; a job that was taken is not removed', async () => {
    const { queue, consume } = await start()
    const { taken, waitFor, release } = await record(consume, { holds: true, concurrency: 1 })
    const [running, removed, last] = [newJob(), newJob(), newJob()]
    for (const job of [running, removed, last]) await queue.add(job)
    await waitFor(1)
    await queue.remove(running)
    await queue.remove(removed)
    release()
    await waitFor(2)
    expect(taken).to.deep.equal([running, last])
  })

  it('a drain takes no further job and waits for the handlers; the jobs left are handled after the next start', async () => {
    const { queue, consume } = await start()
    const { taken, consumer, waitFor, release } = await record(consume, { holds: true, concurrency: 1 })
    const [running, left] = [newJob(), newJob()]
    for (const job of [running, left]) await queue.add(job)
    await waitFor(1)
    let isDrained = false
    const drained = consumer.drain().then(() => {
      isDrained = true
    })
    await new Promise(setImmediate)
    expect(isDrained).to.equal(false)
    release()
    await drained
    expect(taken).to.deep.equal([running])
    const next = await record((await start()).consume)
    await next.waitFor(1)
    expect(next.taken).to.deep.equal([left])
  })

  it('the job of a process that died is handled by another one', async function () {
    this.timeout(30_000)
    const job = newJob(OTHER)
    await (await start()).queue.add(job)
    await setup.crashWithJob()
    const { taken, givenUp, waitFor } = await record((await start()).consume)
    await waitFor(1)
    expect([taken, givenUp]).to.deep.equal([[job], []])
  })

  it('a job whose process died twice is given up, and then it is over', async function () {
    this.timeout(60_000)
    const [poison, marker] = [newJob(OTHER), newJob()]
    await (await start()).queue.add(poison)
    for (let i = 0; i < 2; i++) await setup.crashWithJob()
    const { taken, givenUp, consumer } = await record((await start()).consume)
    await until(() => givenUp.length > 0, { what: 'the job to be given up', withinMs: 20_000 })
    await consumer.drain()
    const after = await start()
    const next = await record(after.consume)
    await after.queue.add(marker)
    await next.waitFor(1)
    expect([taken, givenUp, next.taken, next.givenUp]).to.deep.equal([[], [poison], [marker], []])
  })
}
