import { expect } from 'chai'
import type { Broker } from '../../shared/cluster/commands/broker.ts'
import { newId } from '../../shared/kernel/ids.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { idsOf, statusOf, textOf } from '../support/broker-answers.ts'
import { elapsedMs } from '../support/elapsed.ts'
import { useRedis } from '../support/redis.ts'
import { createTestRelay, type Gateway } from '../support/relay.ts'
import { until } from '../support/until.ts'

const TENANT = DEFAULT_TENANT

describe('broker over Redis when a part of the cluster fails', () => {
  const redis = useRedis()
  const relay = createTestRelay(() => redis.url)
  afterEach(() => relay.close())

  const gateways = async (count: number) => Promise.all(Array.from({ length: count }, () => relay.gateway()))

  /** Removes the gateway from the members, as another process does that finds its lease run out. */
  async function evict(gateway: Gateway): Promise<void> {
    await redis.connect().hdel('ae:{members}', String(gateway.epoch))
  }

  it('while sessions are claimed again after an empty restart of Redis, no live session is 404 or created a second time', async () => {
    for (let i = 0; i < 2; i++) await relay.worker()
    const brokers = (await gateways(2)).map(({ broker }) => broker)
    const [first] = brokers as [Broker]
    const ids = Array.from({ length: 10 }, () => newId('sess'))
    for (const id of ids) await first.createSession(TENANT, id)
    await redis.connect().flushall()

    const since = elapsedMs()
    const seen = new Set<string>()
    const isBack = new Set<string>()
    while (isBack.size < ids.length * brokers.length && elapsedMs() - since < 10_000) {
      for (const [i, broker] of brokers.entries()) {
        for (const id of ids) {
          const read = await statusOf(broker.getSession(TENANT, id))
          const create = await statusOf(broker.createSession(TENANT, id))
          seen.add(`read ${read}`).add(`create ${create}`)
          if (read === 200 && create === 409) isBack.add(`${i} ${id}`)
          else isBack.delete(`${i} ${id}`)
        }
      }
    }
    expect([...seen].sort()).to.deep.equal(['create 409', 'create 503', 'read 200', 'read 503'])
    expect(elapsedMs() - since, 'P3: service is normal again').to.be.lessThan(4_000)
  })

  it('a gateway that was evicted rejoins and relays runs of any length as before', async () => {
    await relay.worker()
    const [gateway] = (await gateways(1)) as [Gateway]
    const prompt = `/say ${'x'.repeat(1024)}\n`.repeat(6 * 1024)
    const epoch = gateway.epoch
    expect((await textOf((await gateway.broker.startRun(TENANT, { prompt })).frames)).length).to.be.above(6e6)
    await evict(gateway)
    await until(() => gateway.epoch !== epoch, { what: 'the gateway to rejoin' })
    const text = await textOf((await gateway.broker.startRun(TENANT, { prompt })).frames)
    expect(idsOf(text)).to.deep.equal(idsOf(text).map((_, at) => at + 1))
    expect(text).to.include('event: done')
  })

  it('a run whose start was not confirmed in time is cancelled, so that it does not run beside its replacement', async () => {
    const mute = await relay.worker()
    const { broker } = await relay.gateway()
    const { frames } = await broker.startRun(TENANT, { prompt: '/sleep 1' })
    await textOf(frames)
    const channel = mute.link.publish
    mute.link.publish = () => Promise.reject(new Error('mute'))
    const since = performance.now()
    expect(await statusOf(broker.startRun(TENANT, { prompt: '/sleep 60000' }))).to.equal(503)
    expect(performance.now() - since).to.be.at.least(900)
    await until(() => mute.worker.liveRuns() === 0, { what: 'the run to be cancelled' })
    mute.link.publish = channel
  })

  it('P3: while Redis is suspended every request is answered 503 in time, with any number of workers', async () => {
    for (let i = 0; i < 3; i++) await relay.worker()
    const { broker } = await relay.gateway()
    const { session_id: id } = await broker.createSession(TENANT)
    const { runId, frames } = await broker.startRun(TENANT, { prompt: '/say hi' })
    await textOf(frames)
    await redis.server.kill('SIGSTOP')
    for (let round = 0; round < 2; round++) {
      const since = elapsedMs()
      const acts = [
        broker.startRun(TENANT, { prompt: 'x' }),
        broker.createSession(TENANT),
        broker.getSession(TENANT, id),
        broker.sendMessage(TENANT, id, { prompt: 'x' }),
        broker.getRun(TENANT, runId),
        broker.followRun(TENANT, runId, 0),
        broker.listRuns(TENANT, { limit: 1 }),
        broker.replyPermission(TENANT, id, newId('perm'), { allow: true }),
      ]
      expect(new Set(await Promise.all(acts.map(statusOf)))).to.deep.equal(new Set([503]))
      expect(elapsedMs() - since).to.be.lessThan(2_000)
    }
    await redis.server.kill('SIGCONT')
    const since = elapsedMs()
    const isServed = async () => (await statusOf(broker.getSession(TENANT, id))) === 200
    await until(isServed, { what: 'the session to be served again', everyMs: 20 })
    expect(elapsedMs() - since).to.be.lessThan(5_000)
  })

  it('the idle sessions of a draining worker continue on another worker, and its runs stay in the list until they end', async () => {
    const leaving = await relay.worker({ limits: { runResumeMs: 500 } })
    const { broker } = await relay.gateway()
    const { session_id: id } = await broker.createSession(TENANT)
    await textOf((await broker.sendMessage(TENANT, id, { prompt: '/say one' })).frames)
    const { runId, frames } = await broker.startRun(TENANT, { prompt: '/tool Ask {}' })
    const reading = textOf(frames)
    await relay.worker()
    const { broker: other } = await relay.gateway()
    const drained = leaving.drain(60_000)
    await textOf((await broker.sendMessage(TENANT, id, { prompt: '/say two' })).frames)
    const running = await other.listRuns(TENANT, { limit: 10, status: 'waiting' })
    expect(running.runs.map(({ run_id }) => run_id)).to.deep.equal([runId])
    await other.cancelRun(TENANT, runId)
    await Promise.all([reading, drained])
    expect(await other.getSession(TENANT, id)).to.include({ session_id: id, message_count: 4 })
  })

  it('large sessions are handed over too', async () => {
    const leaving = await relay.worker()
    const { broker } = await relay.gateway()
    const ids = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const { session_id: id } = await broker.createSession(TENANT)
        const { frames } = await broker.sendMessage(TENANT, id, { prompt: `/say ${'x'.repeat(200_000)}` })
        await textOf(frames)
        return id
      }),
    )
    await relay.worker()
    await leaving.drain(1_000)
    await leaving.leave()
    for (const id of ids) expect(await broker.getSession(TENANT, id)).to.include({ session_id: id, message_count: 2 })
  })

  it('when several workers leave at the same time, the sessions of all of them continue on the one that stays', async () => {
    const [a, b] = [await relay.worker(), await relay.worker()]
    const { broker } = await relay.gateway()
    const ids = await Promise.all(
      Array.from({ length: 8 }, async () => (await broker.createSession(TENANT)).session_id),
    )
    await relay.worker()
    await Promise.all([a.drain(1_000), b.drain(1_000)])
    await Promise.all([a.leave(), b.leave()])
    for (const id of ids) expect(await broker.getSession(TENANT, id)).to.include({ session_id: id })
  })
})
