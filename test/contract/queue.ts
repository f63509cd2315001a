// Tests ../work/queue/port.ts: the promises of a queue, on every adapter.

import { expect } from 'chai'
import { DEFAULT_TENANT, type TenantId } from '../../shared/kernel/tenant.ts'
import type {
  Consume,
  ConsumeOptions,
  Job,
  JobConsumer,
  JobEnd,
  JobKind,
  JobQueue,
  QueueMonitor,
} from '../../shared/work/queue/port.ts'
import { tenantId } from '../support/tenant.ts'
import { until } from '../support/until.ts'

/** The queue as one process has it. */
export type QueueProcess = { queue: JobQueue & QueueMonitor; consume: Consume }

export type QueueSetup = {
  /** Starts a process. The one before it has ended, with or without a crash. */
  start(): Promise<QueueProcess>
  /** Lets a process take one job and die before its handler has ended. */
  crashWithJob(): Promise<void>
}

const OTHER = tenantId('other')
const THIRD = tenantId('third')
let lastId = 0
const newJob = (tenant = DEFAULT_TENANT, kind: JobKind = 'flow'): Job => ({ kind, tenant, id: `trace_${++lastId}` })

/** A consumer that records the jobs. Its handlers end when `release` is called, if `holds` is set. */
export async function record(
  consume: Consume,
  { holds = false, concurrency = 2, kind = 'flow' }: { holds?: boolean; concurrency?: number; kind?: JobKind } = {},
) {
  const taken: Job[] = []
  const givenUp: Job[] = []
  const held = Promise.withResolvers<void>()
  const consumer = await consume(
    kind,
    async (job) => {
      taken.push(job)
      if (holds) await held.promise
    },
    { concurrency, onGivenUp: async (job) => void givenUp.push(job) },
  )
  const waitFor = (count: number) =>
    until(() => taken.length >= count, { what: `${count} jobs`, lastSeen: () => taken })
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

  it('the ids without a job are those that were never added, were removed, or have ended, well or not', async () => {
    const { queue, consume } = await start()
    const add = async () => {
      const [job] = await addPlans(queue, DEFAULT_TENANT, 1)
      return job?.id ?? ''
    }
    const held = Promise.withResolvers<void>()
    const [done, failed, active] = [await add(), await add(), await add()]
    const handler = async ({ id }: Job): Promise<JobEnd | void> => {
      if (id === failed) return { failed: 'its handler said so' }
      if (id === active) await held.promise
    }
    await consume('plan', handler, { concurrency: 1, onGivenUp: handler })
    const isOver = async () => (await queue.counts('plan')).failed === 1 && (await queue.counts('plan')).waiting === 0
    await until(isOver, { what: 'two of three jobs to end' })
    const [waiting, removed] = [await add(), await add()]
    await queue.remove({ kind: 'plan', tenant: DEFAULT_TENANT, id: removed })
    const ids = [done, failed, active, waiting, removed, 'unknown']
    expect(await queue.missing('plan', ids)).to.deep.equal([done, failed, removed, 'unknown'])
    expect(await queue.missing('plan', [])).to.deep.equal([])
    held.resolve()
  })

  it('before a consumer has started, a job that was added is not missing', async () => {
    const { queue } = await start()
    const [job] = await addPlans(queue, DEFAULT_TENANT, 1)
    expect(await queue.missing('plan', [job?.id ?? '', 'unknown'])).to.deep.equal(['unknown'])
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

  it('the job of a process that died is handled by another one', async () => {
    const job = newJob(OTHER)
    await (await start()).queue.add(job)
    await setup.crashWithJob()
    const { taken, givenUp, waitFor } = await record((await start()).consume)
    await waitFor(1)
    expect([taken, givenUp]).to.deep.equal([[job], []])
  })

  it('a job whose process died twice is given up, and then it is over', async () => {
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

  /** Takes one job and holds it, so that the order of the later ones is decided when all have been added. */
  async function startBusy(queue: JobQueue, consume: Consume, concurrency = 1) {
    const first = Array.from({ length: concurrency }, () => newJob(DEFAULT_TENANT, 'plan'))
    for (const job of first) await queue.add(job)
    const steps: (() => void)[] = []
    const taken: Job[] = []
    const handler = (job: Job) => {
      taken.push(job)
      return new Promise<void>((resolve) => void steps.push(resolve))
    }
    const consumer = await consume('plan', handler, { concurrency, onGivenUp: handler })
    const waitFor = (count: number) => until(() => taken.length >= count, { what: `${count} plans` })
    await waitFor(concurrency)
    /** Ends the oldest handler, and waits for the next job. */
    const next = async () => {
      const count = taken.length
      steps.shift()?.()
      await waitFor(count + 1)
      return taken.at(-1)
    }
    const releaseAll = () => {
      for (const step of steps.splice(0)) step()
    }
    return { next, taken, consumer, releaseAll }
  }

  const addPlans = async (queue: JobQueue, tenant: TenantId, count: number): Promise<Job[]> => {
    const jobs = Array.from({ length: count }, () => newJob(tenant, 'plan'))
    for (const job of jobs) await queue.add(job)
    return jobs
  }

  it('the first plan of a tenant is handled in the next free slot, however many plans of another tenant wait', async () => {
    const { queue, consume } = await start()
    const { next, releaseAll } = await startBusy(queue, consume, 2)
    const many = await addPlans(queue, DEFAULT_TENANT, 1_000)
    const [one] = await addPlans(queue, OTHER, 1)
    expect(await next()).to.deep.equal(one)
    expect(await next()).to.deep.equal(many[0])
    const [third] = await addPlans(queue, THIRD, 1)
    expect(await next()).to.deep.equal(third)
    expect(await next()).to.deep.equal(many[1])
    releaseAll()
  })

  it('tenants that wait take turns, and the plans of each are handled in their order', async () => {
    const { queue, consume } = await start()
    const { next, releaseAll } = await startBusy(queue, consume)
    const [a, b, c] = [
      await addPlans(queue, DEFAULT_TENANT, 4),
      await addPlans(queue, OTHER, 3),
      await addPlans(queue, THIRD, 2),
    ]
    const order: (Job | undefined)[] = []
    for (let i = 0; i < 9; i++) order.push(await next())
    const [[a1, a2, a3, a4], [b1, b2, b3], [c1, c2]] = [a, b, c]
    expect(order).to.deep.equal([b1, c1, a1, b2, c2, a2, b3, a3, a4])
    releaseAll()
  })

  it('a plan is handled although other tenants add plans all the time', async () => {
    const { queue, consume } = await start()
    const { next, taken, releaseAll } = await startBusy(queue, consume)
    const waiting = await addPlans(queue, DEFAULT_TENANT, 3)
    for (let i = 0; i < 12; i++) {
      await addPlans(queue, OTHER, 1)
      await addPlans(queue, THIRD, 1)
      await next()
    }
    expect(taken).to.include.deep.members(waiting)
    releaseAll()
  })

  /** Takes jobs that each hang until the test ends them, or until they are asked to give way where `yields` says so. */
  async function hang(consume: Consume, kind: JobKind, options: Partial<ConsumeOptions> & { yields?: boolean } = {}) {
    const taken: Job[] = []
    const asked: Job[] = []
    const ends = new Map<string, (end?: JobEnd) => void>()
    const handler = (job: Job, giveWay?: AbortSignal) => {
      taken.push(job)
      const { promise, resolve } = Promise.withResolvers<JobEnd | undefined>()
      ends.set(job.id, resolve)
      const onAsked = () => {
        asked.push(job)
        if (options.yields) resolve({ again: true })
      }
      giveWay?.addEventListener('abort', onAsked, { once: true })
      return promise
    }
    await consume(kind, handler, { concurrency: 4, perTenant: 2, onGivenUp: handler, ...options })
    const waitFor = (count: number) =>
      until(() => taken.length >= count, { what: `${count} jobs`, lastSeen: () => taken })
    const endAll = () => {
      for (const end of ends.values()) end()
    }
    return { taken, asked, waitFor, end: ({ id }: Job) => ends.get(id)?.(), endAll }
  }

  const addAll = async (queue: JobQueue, jobs: readonly Job[]) => {
    for (const job of jobs) await queue.add(job)
    return jobs
  }
  const some = (count: number, tenant: TenantId, kind: JobKind) =>
    Array.from({ length: count }, () => newJob(tenant, kind))

  for (const kind of ['flow', 'plan'] as const)
    it(`kind ${kind}: a tenant takes all slots while nobody else waits; however long its jobs hang, others get theirs up to their shares`, async () => {
      const { queue, consume } = await start()
      const { taken, waitFor, end, endAll } = await hang(consume, kind)
      const many = await addAll(queue, some(50, DEFAULT_TENANT, kind))
      await waitFor(4)
      expect(taken).to.deep.equal(many.slice(0, 4))
      const others = await addAll(queue, some(3, OTHER, kind))
      await waitFor(6)
      expect(taken.slice(4)).to.deep.equal(others.slice(0, 2))
      for (const job of taken.slice(0, 4)) end(job) // Now both have two slots; the first tenant's were above its share.
      await waitFor(8)
      expect(taken.slice(6)).to.deep.equal(many.slice(4, 6))
      end(others[0] as Job)
      await waitFor(9)
      expect(taken[8]).to.deep.equal(others[2])
      endAll()
    })

  it('a job above the share of its tenant is asked to give way for each extra slot; it waits again, and goes on when there is a slot', async () => {
    const { queue, consume } = await start()
    const { taken, asked, waitFor, end, endAll } = await hang(consume, 'plan', { yields: true })
    const [first, second, third, fourth] = (await addAll(queue, some(4, DEFAULT_TENANT, 'plan'))) as [
      Job,
      Job,
      Job,
      Job,
    ]
    await waitFor(4)
    const [other] = await addAll(queue, some(1, OTHER, 'plan'))
    await waitFor(5)
    await until(async () => (await queue.counts('plan')).active === 4, { what: 'one job to have given way' })
    expect([asked, taken.slice(4)]).to.deep.equal([[fourth], [other]])
    end(other as Job)
    await waitFor(6)
    expect(taken.slice(5)).to.deep.equal([fourth])
    for (const job of [first, second, third]) end(job)
    await until(async () => (await queue.counts('plan')).active === 1, { what: 'the other jobs to end' })
    endAll()
  })

  it('without memory no extra slot is opened, but the job above its share gives way', async () => {
    const { queue, consume } = await start()
    let hasMemory = false
    const { taken, asked, waitFor, endAll } = await hang(consume, 'plan', { mayGrow: () => hasMemory })
    const jobs = await addAll(queue, some(4, DEFAULT_TENANT, 'plan'))
    await waitFor(4)
    const [other] = await addAll(queue, some(1, OTHER, 'plan'))
    await until(() => asked.length > 0, { what: 'a job to be asked to give way' })
    expect([asked, taken]).to.deep.equal([[jobs[3]], jobs])
    hasMemory = true
    await waitFor(5)
    expect(taken[4]).to.deep.equal(other)
    endAll()
  })

  it('a plan that is added twice is handled once, and one that has ended can be added again', async () => {
    const { queue, consume } = await start()
    const ends: JobEnd[] = [{ failed: 'it failed' }]
    const taken: Job[] = []
    const handler = async (job: Job) => {
      taken.push(job)
      return ends.shift()
    }
    const job = newJob(OTHER, 'plan')
    await queue.add(job)
    await queue.add(job)
    await consume('plan', handler, { concurrency: 1, onGivenUp: handler })
    await until(async () => (await queue.counts('plan')).failed === 1, { what: 'the plan to have failed' })
    expect(taken).to.deep.equal([job])
    await queue.add(job)
    await until(() => taken.length === 2, { what: 'the plan to be handled again' })
    const marker = newJob(OTHER, 'plan')
    await queue.add(marker)
    await until(() => taken.length === 3, { what: 'the next plan' })
    expect(taken).to.deep.equal([job, job, marker])
  })

  it('a job whose handler gives it back is handled after the next start, and does not count as one whose process died', async () => {
    const job = newJob(OTHER, 'plan')
    await (await start()).queue.add(job)
    for (let i = 0; i < 4; i++) {
      const { consume } = await start()
      const held = Promise.withResolvers<JobEnd>()
      const taken: Job[] = []
      const consumer = await consume(
        'plan',
        (each) => {
          taken.push(each)
          return held.promise
        },
        { concurrency: 1, onGivenUp: async () => expect.fail('given up') },
      )
      await until(() => taken.length > 0, { what: `start ${i}` })
      const drained = consumer.drain()
      held.resolve({ again: true })
      await drained
      expect(taken).to.deep.equal([job])
    }
  })

  it('the counts of a kind: waiting, active and failed jobs, and the age of the oldest that waits', async () => {
    const { queue, consume } = await start()
    const none = { waiting: 0, active: 0, failed: 0, oldestWaitingMs: 0 }
    for (const kind of ['flow', 'plan'] as const) {
      expect(await queue.counts(kind)).to.deep.equal(none)
      const held = Promise.withResolvers<JobEnd>()
      const consumer = await consume(kind, () => held.promise, { concurrency: 1, onGivenUp: async () => {} })
      for (let i = 0; i < 3; i++) await queue.add(newJob(OTHER, kind))
      const counts = await until(
        async () => {
          const now = await queue.counts(kind)
          return now.active === 1 && now.oldestWaitingMs > 5 && now
        },
        { what: 'an active job' },
      )
      expect(counts).to.deep.include({ waiting: 2, active: 1, failed: 0 })
      expect(counts.oldestWaitingMs).to.be.below(10_000)
      const drained = consumer.drain()
      held.resolve({ failed: `${kind}_1 failed` })
      await drained
      expect(await queue.counts(kind)).to.deep.include({ active: 0, failed: 1 })
    }
    expect(await queue.counts('schedule')).to.deep.equal(none)
  })
}
