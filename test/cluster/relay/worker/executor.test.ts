import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { begin, refusalOf } from '../../../contract/queued-runs.ts'
import { eventsOf, textOf } from '../../../support/broker-answers.ts'
import { beginRun } from '../../../support/demo-executor.ts'
import { elapsedMs } from '../../../support/elapsed.ts'
import { openQueuedRelay } from '../../../support/queued-relay.ts'
import { useRedis } from '../../../support/redis.ts'
import { createTestRelay } from '../../../support/relay.ts'
import { until } from '../../../support/until.ts'

const TENANT = DEFAULT_TENANT

describe('executors of the relay', () => {
  const redis = useRedis()
  const opened: { close(): Promise<void> }[] = []
  const open = async () => {
    const setup = await openQueuedRelay(createTestRelay(() => redis.url))
    opened.push(setup)
    return setup
  }
  afterEach(async () => {
    for (const { close } of opened.splice(0)) await close()
  })

  it('sessions and one-shot runs are placed on workers only', async () => {
    const { relay, brokers } = await open()
    for (let i = 0; i < 20; i++) {
      await brokers[0].createSession(TENANT)
      await textOf((await brokers[1].startRun(TENANT, { prompt: '/say x' })).frames)
    }
    await relay.close()
    const gateway = await relay.gateway()
    await relay.executor()
    await until(() => gateway.executors.hasAny(), { what: 'the gateway to see the executor' })
    expect(await refusalOf(gateway.broker.createSession(TENANT))).to.include({ status: 503 })
    expect(await refusalOf(gateway.broker.startRun(TENANT, { prompt: '/say x' }))).to.include({ status: 503 })
  })

  it('an executor that has just joined is known, and one that drains takes no new work and is still alive', async () => {
    const { relay, gateways, idle, member } = await open()
    const [{ executors }] = gateways
    const late = await relay.executor()
    expect(await executors.isAlive(late.epoch)).to.equal(true)
    expect(await member.executors.isAlive(late.epoch)).to.equal(true)
    expect(await executors.isAlive(late.epoch + 1)).to.equal(false)
    await Promise.all([late, idle, member].map((each) => each.drain(0)))
    await until(() => !executors.hasAny(), { what: 'no executor to take new work' })
    expect(await executors.isAlive(member.epoch)).to.equal(true)
    expect(member.readiness()).to.deep.equal({ isBusAway: false, isMember: true, isDraining: true })
  })

  it('a run ends with worker_draining when its executor drains, and the frame is delivered', async () => {
    const setup = await open()
    const runId = setup.table.queue(TENANT)
    const reading = textOf(await setup.brokers[0].followRun(TENANT, runId, 0))
    begin(setup, runId)
    await until(() => setup.member.executor.liveRuns(), { what: 'the run to be live' })
    await setup.member.drain(0)
    expect(await reading).to.include('"code":"worker_draining"')
  })

  it('no client waits longer than 10 s for an executor that died: worker_lost, and then 404; the others learn of its death', async () => {
    const setup = await open()
    const { brokers, table, member, idle } = setup
    const lost: number[] = []
    idle.executor.onMemberLost = (epoch) => void lost.push(epoch)
    const [running, queued] = [table.queue(TENANT), table.queue(TENANT)]
    const readings = [running, queued].map(async (runId) => textOf(await brokers[0].followRun(TENANT, runId, 0)))
    begin(setup, running)
    await until(async () => (await brokers[0].getRun(TENANT, running)).event_count === 1, { what: 'the first event' })
    const since = elapsedMs()
    await member.link.close() // It neither renews its lease nor answers.
    table.set(TENANT, queued, { state: 'at', epoch: member.epoch })
    for (const text of await Promise.all(readings)) expect(text).to.include('"code":"worker_lost"')
    expect(elapsedMs() - since).to.be.lessThan(10_000)
    await until(() => lost.length > 0, { what: 'the other executor to learn of the death' })
    expect(lost).to.deep.equal([member.epoch])
    expect(await refusalOf(brokers[1].getRun(TENANT, running))).to.include({ status: 404 })
  })

  it('an executor that was evicted ends its runs, and announces the next ones under its new epoch', async () => {
    const setup = await open()
    const { brokers, table, member } = setup
    const [lost, next] = [table.queue(TENANT), table.queue(TENANT)]
    begin(setup, lost)
    const before = member.epoch
    const reading = textOf(await brokers[0].followRun(TENANT, next, 0))
    await redis.connect().hdel('ae:{members}', String(before))
    await until(() => member.epoch !== before && member.epoch > 0, { what: 'the executor to join again' })
    expect(member.executor.liveRuns()).to.equal(0)
    const run = beginRun(member.executor, TENANT, next)
    setup.executor.announce(next)
    run.finish()
    expect(eventsOf(await reading)).to.deep.equal(['started', 'result'])
  })

  it('the streams of queued runs count as open, and end with worker_draining when their gateway drains', async () => {
    const { gateways, table } = await open()
    const [gateway] = gateways
    const reading = textOf(await gateway.broker.followRun(TENANT, table.queue(TENANT), 0))
    const loads = () => redis.connect().hvals('ae:{members}:loads')
    await until(async () => (await loads()).includes('1'), { what: 'the gateway to publish its load' })
    await gateway.drain({ graceMs: 0, streamsMs: 10 })
    expect(await reading).to.include('"code":"worker_draining"')
    expect(await refusalOf(gateway.broker.followRun(TENANT, table.queue(TENANT), 0))).to.include({ status: 503 })
  })
})
