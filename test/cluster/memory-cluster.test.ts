import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { brokerContract } from '../contract/broker.ts'
import { queuedRunsContract } from '../contract/queued-runs.ts'
import { eventsOf, idsOf, statusOf, textOf } from '../support/broker-answers.ts'
import { beginRun, createRunTable } from '../support/demo-executor.ts'
import { openQueuedRelay } from '../support/queued-relay.ts'
import { createMemoryRelay } from '../support/relay.ts'
import { until } from '../support/until.ts'

const TENANT = DEFAULT_TENANT

describe('broker over the relay within one process', () =>
  brokerContract(async () => {
    const relay = createMemoryRelay()
    for (let i = 0; i < 2; i++) await relay.worker()
    const gateways = [await relay.gateway(), await relay.gateway()] as const
    return { brokers: [gateways[0].broker, gateways[1].broker], close: relay.close }
  }))

describe('queued runs over the relay within one process', () =>
  queuedRunsContract(() => openQueuedRelay(createMemoryRelay())))

describe('a queued run that its gateway expects', () => {
  const open = async () => {
    const setup = await openQueuedRelay(createMemoryRelay())
    const { gateways, table, executor } = setup
    const [{ broker }] = gateways
    const runId = table.queue(TENANT)
    const reader = broker.expectRun?.(TENANT, runId)
    if (!reader) throw new Error('the broker of a cluster expects runs')
    const begin = () => {
      table.set(TENANT, runId, { state: 'at', epoch: executor.epoch })
      return beginRun(executor.executor, TENANT, runId)
    }
    return { ...setup, broker, runId, reader, begin }
  }

  it('comes without a call or a look-up, whether it begins before or after it is followed; nobody else is told', async () => {
    for (const isFollowedFirst of [true, false]) {
      const { broker, brokers, table, executor, runId, reader, begin, close } = await open()
      const follow = async () => textOf(await broker.followRun(TENANT, runId, 0))
      const early = isFollowedFirst ? follow() : undefined
      const run = begin()
      executor.announce(runId, reader)
      run.finish()
      const text = await (early ?? follow())
      expect(eventsOf(text)).to.deep.equal(['started', 'result'])
      expect(table.lookUps).to.equal(0)
      table.set(TENANT, runId, { state: 'ended', epoch: executor.epoch })
      expect(await textOf(await brokers[1].followRun(TENANT, runId, 0))).to.equal(text)
      await close()
    }
  })

  it('the frames of a reader that needs the end come together, those of another one as they are made', async () => {
    for (const readsEnd of [true, false]) {
      const { broker, executor, runId, reader, begin, close } = await open()
      const numbers: number[] = []
      const read = async () => {
        for await (const { lastSeq } of await broker.followRun(TENANT, runId, 0)) numbers.push(lastSeq)
      }
      const reading = read()
      const run = begin()
      executor.announce(runId, { ...reader, readsEnd })
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
      run.finish()
      await reading
      expect(numbers).to.deep.equal(readsEnd ? [2] : [1, 2])
      await close()
    }
  })

  it('is announced to the other gateways, too, where its client comes back; they need not look it up', async () => {
    const { broker, brokers, table, executor, member, runId, reader, begin, close } = await open()
    await member.executors.isAlive(reader.gateway + 1) // By then it knows the other gateway.
    const other = textOf(await brokers[1].followRun(TENANT, runId, 0))
    const own = textOf(await broker.followRun(TENANT, runId, 0))
    const run = begin()
    executor.announce(runId, { ...reader, comesBack: true })
    run.finish()
    for (const text of [own, other]) expect(eventsOf(await text)).to.deep.equal(['started', 'result'])
    expect(table.lookUps).to.equal(1)
    await close()
  })

  it('is announced to nobody where its client comes back to the only gateway', async () => {
    const [relay, { source, queue }] = [createMemoryRelay(), createRunTable()]
    await relay.worker()
    const member = await relay.executor()
    const { broker } = await relay.gateway({ jobs: [source] })
    const [told, publish] = [[] as string[], member.link.publish.bind(member.link)]
    member.link.publish = (channel, message) => (told.push(channel), publish(channel, message))
    const runId = queue(TENANT)
    const reader = broker.expectRun?.(TENANT, runId)
    const reading = textOf(await broker.followRun(TENANT, runId, 0))
    const run = beginRun(member.executor, TENANT, runId)
    const { ended } = member.executor.runs.get(TENANT, runId)
    member.announceStart({ id: runId, tenant: TENANT, ended }, reader && { ...reader, comesBack: true })
    run.finish()
    expect(eventsOf(await reading)).to.deep.equal(['started', 'result'])
    expect(told).to.not.include('started')
    await relay.close()
  })

  it('is announced to all where the gateway that it was for has gone', async () => {
    const { broker, executor, runId, reader, begin, close } = await open()
    const reading = textOf(await broker.followRun(TENANT, runId, 0))
    begin().finish()
    executor.announce(runId, { ...reader, gateway: reader.gateway + 1_000 })
    expect(eventsOf(await reading)).to.deep.equal(['started', 'result'])
    await close()
  })
})

describe('a cluster within one process', () => {
  const relay = createMemoryRelay()
  afterEach(() => relay.close())

  it('a gateway that was cut off from the others gets the frames that it has missed', async () => {
    const { worker } = await relay.worker()
    const { broker, link } = await relay.gateway()
    const { frames } = await broker.startRun(TENANT, { prompt: '/say one\n/tool Ask {}\n/say two' })
    const { permissions } = await until(
      async () => {
        const page = await broker.listPermissions(TENANT, { limit: 1 })
        return page.permissions.length > 0 && page
      },
      { what: 'the request' },
    )
    const [asked] = permissions
    const { broker: other } = await relay.gateway() // Until it has joined, the worker learns that the first one has accepted the run.
    link.cut()
    expect(await statusOf(broker.startRun(TENANT, { prompt: '/say no' }))).to.equal(503)
    await other.replyPermission(TENANT, asked?.session_id ?? '', asked?.id ?? '', { allow: true })
    await until(() => worker.liveRuns() === 0, { what: 'the run to end' })
    link.mend()
    const text = await textOf(frames)
    expect(idsOf(text)).to.deep.equal(idsOf(text).map((_, i) => i + 1))
    expect(eventsOf(text).at(-1)).to.equal('done')
  })

  it('D37.2, D4.12: the request of a run that died with its worker is listed no more, and no reply to it is accepted, though its time is not over', async () => {
    const worker = await relay.worker()
    const { broker } = await relay.gateway()
    const { runId, frames } = await broker.startRun(TENANT, { prompt: '/tool Ask {}' })
    const { permissions } = await until(
      async () => {
        const page = await broker.listPermissions(TENANT, { limit: 1 })
        return page.permissions.length > 0 && page
      },
      { what: 'the request' },
    )
    await relay.kill(worker)
    expect(await textOf(frames)).to.include('worker_lost')
    expect((await broker.listPermissions(TENANT, { limit: 1 })).permissions).to.deep.equal([])
    const id = permissions[0]?.id ?? ''
    expect(await statusOf(broker.replyPermission(TENANT, runId, id, { allow: true }))).to.equal(404)
    expect(await broker.findPermission(TENANT, runId, id)).to.equal(undefined)
  })
})
