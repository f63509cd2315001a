import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import type { Consume, Job, JobConsumer, Schedules } from '../../shared/work/queue/port.ts'
import { readTick, type Tick } from '../../shared/work/queue/schedule-times.ts'
import { tenantId } from '../support/tenant.ts'
import { until } from '../support/until.ts'

export type SchedulesProcess = { schedules: Schedules; consume: Consume }

const OTHER = tenantId('other:tenant')
const EVERY_SECOND = { every_secs: 1 }

/** Expects ticks at multiples of a time, each later than the one before. A busy machine may leave some out. */
function expectDistinct(ticks: readonly Tick[], everyMs: number): void {
  const times = ticks.map(({ at }) => at)
  expect(times.map((at) => at % everyMs)).to.deep.equal(times.map(() => 0))
  expect(times).to.deep.equal([...new Set(times)].toSorted((a, b) => a - b))
}

/** The tests that all schedules pass. `openTwo` opens two processes on one queue; a form of one process returns it twice. */
export function schedulesContract(openTwo: () => Promise<readonly [SchedulesProcess, SchedulesProcess]>): void {
  let processes: readonly [SchedulesProcess, SchedulesProcess]
  const consumers: JobConsumer[] = []
  beforeEach(async () => {
    processes = await openTwo()
  })
  afterEach(async () => {
    await Promise.all(consumers.splice(0).map((consumer) => consumer.close()))
    await Promise.all(processes.map(({ schedules }) => schedules.close()))
  })

  async function recordTicks(...each: SchedulesProcess[]): Promise<Job[]> {
    const taken: Job[] = []
    const handler = async (job: Job) => void taken.push(job)
    for (const { consume } of each)
      consumers.push(await consume('schedule', handler, { concurrency: 2, onGivenUp: handler }))
    return taken
  }

  const waitFor = (taken: readonly Job[], count: number) =>
    until(() => taken.length >= count, { what: `${count} ticks`, withinMs: 10_000, lastSeen: () => taken })

  it('each tick is handed out once, at its time, whichever processes put the schedule', async () => {
    const [one, other] = processes
    const ticks = await recordTicks(...new Set([one, other]))
    const since = Date.now()
    await Promise.all([one, other].map(({ schedules }) => schedules.put(OTHER, 'a.b-c_1', EVERY_SECOND)))
    for (let count = 1; count <= 3; count++) {
      await waitFor(ticks, count)
      await other.schedules.put(OTHER, 'a.b-c_1', EVERY_SECOND) // As the reconciler does.
    }
    const read = ticks.map((job) => ({ ...job, ...readTick(job) }))
    const first = read[0]?.at ?? 0
    expect(first).to.be.within(since, since + 2_100)
    expectDistinct(read, 1_000)
    for (const tick of read) expect(tick).to.deep.include({ kind: 'schedule', tenant: OTHER, name: 'a.b-c_1' })
    expect(read.every(({ id }) => /^[A-Za-z0-9._-]+$/.test(id))).to.equal(true)
  })

  it('two tenants may use the same name, and the removal of one leaves the other', async () => {
    const [one, other] = processes
    const ticks = await recordTicks(one)
    await one.schedules.put(DEFAULT_TENANT, 'same', EVERY_SECOND)
    await one.schedules.put(OTHER, 'same', EVERY_SECOND)
    await waitFor(ticks, 2)
    expect(new Set(ticks.map(({ tenant }) => tenant)).size).to.equal(2)
    expect(new Set(ticks.map(({ id }) => id)).size).to.equal(ticks.length)
    await other.schedules.remove(DEFAULT_TENANT, 'same')
    await other.schedules.remove(DEFAULT_TENANT, 'never-put')
    const from = ticks.length
    await waitFor(ticks, from + 3)
    expect(ticks.slice(from + 1).map(({ tenant }) => tenant)).to.not.include(DEFAULT_TENANT)
  })

  it('a schedule follows a cron pattern in its time zone, slowed down if it says so, and its newest timing', async () => {
    const [one, other] = processes
    const ticks = await recordTicks(other)
    await one.schedules.put(OTHER, 'changed', { every_secs: 86_400 })
    await one.schedules.put(OTHER, 'changed', { cron: '*/2 * * * * *', timezone: 'Asia/Kolkata' })
    await one.schedules.put(OTHER, 'slowed', { cron: '* * * * * *', timezone: 'UTC', least_secs: 2 })
    const of = (name: string) => ticks.map(readTick).filter((tick) => tick.name === name)
    const bothCame = () => of('changed').length >= 2 && of('slowed').length >= 2
    await until(bothCame, { what: 'two ticks of each', withinMs: 10_000, lastSeen: () => ticks })
    for (const name of ['changed', 'slowed']) expectDistinct(of(name), 2_000)
  })

  it('a schedule follows a new time zone when its pattern stays the same', async () => {
    const [one, other] = processes
    const ticks = await recordTicks(other)
    // Each second of this hour and the next by the clocks of Tokyo, which are nine hours ahead of UTC.
    const [first, second] = [9, 10].map((hours) => (new Date().getUTCHours() + hours) % 24)
    const cron = `* * ${first},${second} * * *`
    await one.schedules.put(OTHER, 'moved', { cron, timezone: 'UTC' })
    await one.schedules.put(OTHER, 'moved', { cron, timezone: 'Asia/Tokyo' })
    await waitFor(ticks, 1)
    expect(ticks.map((job) => readTick(job).name)).to.deep.equal(['moved'])
  })
}
