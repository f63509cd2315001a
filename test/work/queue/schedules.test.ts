import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { createBullQueue } from '../../../shared/work/queue/bullmq.ts'
import { createBullConsume } from '../../../shared/work/queue/bullmq-consume.ts'
import { tickTimeOf } from '../../../shared/work/queue/bullmq-redis.ts'
import { createBullSchedules } from '../../../shared/work/queue/bullmq-schedules.ts'
import { MemoryQueue } from '../../../shared/work/queue/memory.ts'
import { MemorySchedules } from '../../../shared/work/queue/memory-schedules.ts'
import type { Job, JobStore } from '../../../shared/work/queue/port.ts'
import { readTick } from '../../../shared/work/queue/schedule-times.ts'
import { schedulesContract } from '../../contract/schedules.ts'
import { elapsedMs } from '../../support/elapsed.ts'
import { useRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

const ignore = () => {}

describe('schedules on Redis', () => {
  const redis = useRedis()
  const open = () => ({
    schedules: createBullSchedules(redis.url),
    consume: createBullConsume({ url: redis.url, onProblem: ignore }),
  })
  const opened: { close(): Promise<void> }[] = []
  const openSchedules = () => {
    const schedules = createBullSchedules(redis.url)
    opened.push(schedules)
    return schedules
  }
  afterEach(() => Promise.all(opened.splice(0).map((each) => each.close())))

  schedulesContract(async () => [open(), open()])

  /** The jobs of the next ticks. Their ids end in their times. */
  const stored = () => redis.connect().zrange('ae:{schedule}:schedule:delayed', '0', '-1')

  it('a put of the same timing changes nothing, and restores what Redis has lost', async () => {
    const schedules = openSchedules()
    await schedules.put(DEFAULT_TENANT, 'daily', { cron: '30 2 * * *', timezone: 'Europe/Berlin' })
    const before = await stored()
    expect(before).to.have.length(1)
    await schedules.put(DEFAULT_TENANT, 'daily', { cron: '30 2 * * *', timezone: 'Europe/Berlin' })
    expect(await stored()).to.deep.equal(before)
    await redis.connect().flushall()
    await schedules.put(DEFAULT_TENANT, 'daily', { cron: '30 2 * * *', timezone: 'Europe/Berlin' })
    expect(await stored()).to.deep.equal(before)
    await redis.connect().del('ae:{schedule}:schedule:delayed', `ae:{schedule}:schedule:${before[0]}`)
    await schedules.put(DEFAULT_TENANT, 'daily', { cron: '30 2 * * *', timezone: 'Europe/Berlin' })
    expect(await stored()).to.deep.equal(before)
    await schedules.remove(DEFAULT_TENANT, 'daily')
    expect(await stored()).to.deep.equal([])
  })

  it('of the ticks that were missed while no consumer ran, one is handed out, and then those to come', async () => {
    const schedules = openSchedules()
    await schedules.put(DEFAULT_TENANT, 'often', { every_secs: 1 })
    const first = tickTimeOf((await stored())[0] ?? '')
    await until(() => Date.now() > first + 2_500, { what: 'three ticks to be missed' })
    const ticks: number[] = []
    const handler = async (job: Job) => void ticks.push(readTick(job).at)
    const startedAt = Date.now()
    const consume = createBullConsume({ url: redis.url, onProblem: ignore })
    opened.push(await consume('schedule', handler, { concurrency: 1, onGivenUp: handler }))
    await until(() => ticks.length >= 3, { what: 'three ticks', lastSeen: () => ticks })
    expect(ticks[0]).to.equal(first)
    expect(ticks[1]).to.be.above(startedAt - 1)
    expect(ticks[2]).to.be.above(ticks[1] ?? 0)
  })

  it('a put without Redis is refused within two seconds', async () => {
    await redis.server.kill('SIGSTOP')
    const since = elapsedMs()
    const put = openSchedules().put(DEFAULT_TENANT, 'a', { every_secs: 5 })
    expect(await put.catch((cause: unknown) => cause)).to.include({ kind: 'unavailable' })
    expect(elapsedMs() - since).to.be.below(2_000)
  })

  it('a tick is not a plan: the queues of the kinds are apart', async () => {
    const queue = createBullQueue(redis.url)
    await openSchedules().put(DEFAULT_TENANT, 'a', { every_secs: 86_400 })
    expect(await queue.counts('plan')).to.deep.include({ waiting: 0 })
    expect(await queue.counts('schedule')).to.deep.include({ waiting: 0, oldestWaitingMs: 0 })
    await queue.close()
  })
})

describe('schedules within one process', () => {
  const open = (onProblem: (message: string) => void = ignore, insert: JobStore['insert'] = async () => {}) => {
    const store: JobStore = {
      insert,
      countStart: async () => 1,
      resetStarts: async () => {},
      delete: async () => {},
      list: async () => [],
    }
    const queue = new MemoryQueue({ store, onProblem })
    return { schedules: new MemorySchedules({ queue, onProblem }), consume: queue.consume }
  }

  schedulesContract(async () => {
    const both = open()
    return [both, both]
  })

  it('a tick that cannot be stored is reported, and the next one is fired all the same', async () => {
    const problems: string[] = []
    let calls = 0
    const { schedules } = open(
      (message) => problems.push(message),
      async () => {
        calls++
        throw new Error('away')
      },
    )
    await schedules.put(DEFAULT_TENANT, 'a', { every_secs: 1 })
    await until(() => calls === 2, { what: 'the second tick' })
    await schedules.close()
    expect(problems[0]).to.equal('a scheduled plan could not be started')
  })
})
