// Tests memory.ts and memory-consumer.ts: the queue within one process.

import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { storeUnavailable } from '../../../shared/platform/store/unavailable.ts'
import { MemoryQueue, type MemoryQueueLimits } from '../../../shared/work/queue/memory.ts'
import type { Job, JobStore } from '../../../shared/work/queue/port.ts'
import { createJobStore, JOBS } from '../../../shared/work/queue/store/jobs.ts'
import { queueContract, record } from '../../contract/queue.ts'
import { useTestStore } from '../../support/test-store.ts'
import { until } from '../../support/until.ts'

const job: Job = { kind: 'flow', tenant: DEFAULT_TENANT, id: 'trace_only' }

describe('queue within one process', () => {
  const opened = useTestStore({ collections: [JOBS], perTest: true })

  const open = (jobs: JobStore = createJobStore(opened.store), limits: Partial<MemoryQueueLimits> = {}) => {
    const problems: string[] = []
    const queue = new MemoryQueue({ store: jobs, onProblem: (message) => problems.push(message), limits })
    return { queue, consume: queue.consume, problems }
  }

  queueContract(async () => ({
    start: async () => open(),
    async crashWithJob() {
      const { waitFor } = await record(open().consume, { holds: true, concurrency: 1 })
      await waitFor(1) // Its handler never ends, and nothing else of the process is used again.
    },
  }))

  it('a job is refused when too many wait', async () => {
    const { queue, consume } = open(undefined, { maxWaiting: 1 })
    const { waitFor, consumer } = await record(consume, { holds: true, concurrency: 1 })
    await queue.add({ ...job, id: 'a' })
    await waitFor(1)
    await queue.add({ ...job, id: 'b' })
    const cause = await queue.add({ ...job, id: 'c' }).catch((error: unknown) => error)
    expect(cause).to.be.instanceOf(AppError).and.include({ kind: 'unavailable' })
    await consumer.close()
  })

  it('a job that was taken stays for the next start when it is removed', async () => {
    const { queue, consume } = open()
    const { waitFor } = await record(consume, { holds: true })
    await queue.add(job)
    await waitFor(1)
    await queue.remove(job)
    expect((await createJobStore(opened.store).list('flow')).map((each) => each.job)).to.deep.equal([job])
  })

  it('a job that the store cannot count is not handled before the store answers', async () => {
    const jobs = createJobStore(opened.store)
    let isAway = true
    const countStart = async (each: Job) => {
      if (isAway) throw storeUnavailable('away')
      return jobs.countStart(each)
    }
    const { queue, consume, problems } = open({ ...jobs, countStart }, { retryMs: 1 })
    const { taken, waitFor, consumer } = await record(consume)
    await queue.add(job)
    await until(() => problems.length > 1, { what: 'two attempts' })
    expect(taken).to.deep.equal([])
    isAway = false
    await waitFor(1)
    await consumer.drain()
    expect(await jobs.list('flow')).to.deep.equal([])
  })

  it('a close ends the attempts to count a job, and a handler that ends later still deletes its job', async () => {
    const jobs = createJobStore(opened.store)
    const never = async () => {
      throw storeUnavailable('away')
    }
    const away = open({ ...jobs, countStart: never }, { retryMs: 60_000 })
    const waiting = await record(away.consume)
    await away.queue.add(job)
    await until(() => away.problems.length > 0, { what: 'an attempt' })
    await waiting.consumer.drain()
    const { consumer, waitFor, release } = await record(open().consume, { holds: true })
    await waitFor(1)
    await consumer.close()
    release()
    await until(async () => (await jobs.list('flow')).length === 0, { what: 'the job to be deleted' })
  })

  it('the failed jobs are listed newest first, with the reason of the handler and never with the text of an error', async () => {
    const { queue, consume, problems } = open()
    const fail = async ({ id }: Job) => {
      if (id === 'b') throw new Error('sk-secret')
      return { failed: `${id} failed:\n${'x'.repeat(300)}` }
    }
    const consumer = await consume('flow', fail, { concurrency: 1, onGivenUp: fail })
    for (const id of ['a', 'b']) await queue.add({ ...job, id })
    await until(async () => (await queue.counts('flow')).failed === 2, { what: 'both jobs to have failed' })
    const [second, first] = queue.failures('flow')
    expect(second).to.deep.include({ id: 'b', tenant: DEFAULT_TENANT, reason: 'the job failed: see the log' })
    expect(first?.reason)
      .to.match(/^a failed: x+$/)
      .and.have.length(200)
    expect([problems, queue.failures('plan')]).to.deep.equal([['a job failed'], []])
    await consumer.drain()
  })

  it('the jobs of all tenants are listed in the order in which they were added, however many they are', async () => {
    let now = 0
    const jobs = createJobStore(opened.store, () => new Date((now += 1)))
    const added = Array.from({ length: 1_005 }, (_, i): Job => ({ ...job, id: `trace_${1_005 - i}` }))
    for (const each of added) await jobs.insert(each)
    const expected = added.map((each, i) => ({ job: each, addedAt: i + 1 }))
    expect(await jobs.list('flow')).to.deep.equal(expected)
  })
})
