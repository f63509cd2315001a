import { expect } from 'chai'
import type { Broker } from '../../shared/cluster/commands/broker.ts'
import { newId } from '../../shared/kernel/ids.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import type { RedisLink } from '../../shared/platform/redis/link.ts'
import { statusOf, textOf } from '../support/broker-answers.ts'
import { useRedis } from '../support/redis.ts'
import { createTestRelay, type RelayedWorker } from '../support/relay.ts'
import { until } from '../support/until.ts'

const TENANT = DEFAULT_TENANT

/** Sends a message, reads its answer, and returns how many messages the session has then. */
async function say(broker: Broker, id: string): Promise<number> {
  await textOf((await broker.sendMessage(TENANT, id, { prompt: '/say hi' })).frames)
  return (await broker.getSession(TENANT, id)).message_count
}

/** Runs every script twice, as ioredis does when it loses the connection before the answer. */
function sendTwice({ link }: { link: RedisLink }): void {
  const { run } = link
  link.run = async (...args) => {
    await run(...args)
    return run(...args)
  }
}

/** Keeps the worker's answers back until the returned function is called. */
function mute({ link }: RelayedWorker): () => void {
  const { publish } = link
  link.publish = () => Promise.reject(new Error('mute'))
  return () => {
    link.publish = publish
  }
}

describe('claims of sessions', () => {
  const redis = useRedis()
  const relay = createTestRelay(() => redis.url)
  afterEach(() => relay.close())

  it('api.md Endpoints, POST /sessions: an id in use is 409 while its worker drains and is busy, and the session moves on whole', async () => {
    const leaving = await relay.worker()
    const { broker } = await relay.gateway()
    const { session_id: id } = await broker.createSession(TENANT)
    const { runId, frames } = await broker.sendMessage(TENANT, id, { prompt: '/tool Ask {}' })
    const reading = textOf(frames)
    const waits = async () => (await broker.getRun(TENANT, runId)).status === 'waiting'
    await until(waits, { what: 'the run to wait for permission' })
    await relay.worker()
    const drained = leaving.drain(4_000)
    for (let i = 0; i < 20; i++) expect(await statusOf(broker.createSession(TENANT, id))).to.equal(409)
    await broker.cancelRun(TENANT, runId)
    await Promise.all([reading, drained])
    expect(await statusOf(broker.createSession(TENANT, id))).to.equal(409)
    expect(await say(broker, id)).to.be.at.least(3)
  })

  it('a session that is deleted and created at the same time exists for every request afterwards, or for none', async () => {
    await relay.worker()
    await relay.worker()
    const brokers = [(await relay.gateway()).broker, (await relay.gateway()).broker] as const
    for (let round = 0; round < 60; round++) {
      const { session_id: id } = await brokers[0].createSession(TENANT)
      const deleting = statusOf(brokers[0].deleteSession(TENANT, id))
      const creating = Array.from({ length: 4 }, () => statusOf(brokers[1].createSession(TENANT, id)))
      expect(await deleting).to.equal(200)
      const created = await Promise.all(creating)
      expect(created.filter((status) => status === 200).length).to.be.at.most(1)
      const isThere = created.includes(200)
      expect(await statusOf(brokers[1].getSession(TENANT, id))).to.equal(isThere ? 200 : 404)
      expect(await statusOf(brokers[0].createSession(TENANT, id))).to.equal(isThere ? 409 : 200)
    }
  })

  it('a session whose claim Redis has lost is 409 when it is created again, and has its claim back', async () => {
    await relay.worker()
    const { broker } = await relay.gateway()
    const { session_id: id } = await broker.createSession(TENANT)
    await redis.connect().del(`ae:session:${TENANT} ${id}`)
    expect(await statusOf(broker.createSession(TENANT, id))).to.equal(409)
    expect(await say(broker, id)).to.equal(2)
  })

  it('a creation that a worker carries out too late leaves nothing behind there', async () => {
    const slow = await relay.worker()
    const { broker } = await relay.gateway()
    const unmute = mute(slow)
    const id = newId('sess')
    const failed = statusOf(broker.createSession(TENANT, id))
    expect(await failed).to.equal(503)
    await until(() => [...slow.worker.sessions()].length === 0, { what: 'the late session to be undone' })
    unmute()
    expect(await statusOf(broker.getSession(TENANT, id))).to.equal(404)
    expect(await statusOf(broker.createSession(TENANT, id))).to.equal(200)
  })

  it('sessions are created, handed over and deleted as usual when every command reaches Redis twice', async () => {
    const leaving = await relay.worker()
    const gateway = await relay.gateway()
    for (const member of [leaving, gateway]) sendTwice(member)
    const { broker } = gateway
    const ids = await Promise.all(
      Array.from({ length: 5 }, async () => (await broker.createSession(TENANT)).session_id),
    )
    for (const id of ids) await say(broker, id)
    sendTwice(await relay.worker())
    await leaving.drain(1_000)
    await leaving.leave()
    expect(await Promise.all(ids.map((id) => say(broker, id)))).to.deep.equal(ids.map(() => 4))
    for (const id of ids) await broker.deleteSession(TENANT, id)
    expect(await redis.connect().keys('ae:session:*')).to.deep.equal([])
  })

  it('a hand-over whose answer is lost leaves the session with its new owner alone', async () => {
    const leaving = await relay.worker()
    const { broker } = await relay.gateway()
    const { session_id: id } = await broker.createSession(TENANT)
    await say(broker, id)
    const staying = await relay.worker()
    const unmute = mute(staying)
    await leaving.drain(1_000)
    unmute()
    expect([...leaving.worker.sessions()]).to.deep.equal([])
    expect(await say(broker, id)).to.equal(4)
    expect(staying.worker.isDraining()).to.equal(false)
  })
})
