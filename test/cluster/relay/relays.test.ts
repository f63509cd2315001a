import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { useRedis } from '../../support/redis.ts'
import { createTestRelay } from '../../support/relay.ts'
import { until } from '../../support/until.ts'

const TENANT = DEFAULT_TENANT

describe('relays over Redis', () => {
  const redis = useRedis()
  const relay = createTestRelay(() => redis.url)
  afterEach(() => relay.close())

  it('the claim of a session that its worker removes by itself is deleted', async () => {
    const { worker } = await relay.worker()
    const { broker } = await relay.gateway()
    const { session_id: id } = await broker.createSession(TENANT)
    const client = redis.connect()
    expect(await client.exists(`ae:session:${TENANT} ${id}`)).to.equal(1)
    await worker.inbox.deleteSession(TENANT, id)
    await until(async () => !(await client.exists(`ae:session:${TENANT} ${id}`)), { what: 'the claim to be deleted' })
  })

  it('a worker publishes that it drains before its drain resolves, and reports it', async () => {
    const draining = await relay.worker()
    expect(draining.readiness()).to.deep.equal({ isBusAway: false, isMember: true, isDraining: false })
    await draining.drain(0)
    const entries = await redis.connect().hvals('ae:{members}')
    expect(entries.join()).to.include('draining')
    expect(draining.readiness().isDraining).to.equal(true)
  })

  it('the streams of an evicted gateway end with relay_unavailable, and calls that it makes at once are answered under its new epoch', async () => {
    await relay.worker()
    const gateway = await relay.gateway()
    const { runId, frames } = await gateway.broker.startRun(TENANT, { prompt: '/sleep 60000' })
    await redis.connect().hdel('ae:{members}', String(gateway.epoch))
    let text = ''
    for await (const chunk of frames) text += Buffer.from(chunk.text)
    expect(text).to.include('"code":"relay_unavailable"')
    await gateway.broker.cancelRun(TENANT, runId)
  })

  it('after an empty restart of Redis a worker drops a session that another worker has claimed meanwhile', async () => {
    const { worker } = await relay.worker()
    const { broker } = await relay.gateway()
    const [{ session_id: kept }, { session_id: taken }] = [
      await broker.createSession(TENANT),
      await broker.createSession(TENANT),
    ]
    const other = await relay.worker()
    await redis.connect().multi().flushall().set(`ae:session:${TENANT} ${taken}`, `${other.epoch} a1`).exec()
    const idsOf = () => Array.from(worker.sessions(), ({ id }) => id)
    const dropped = { what: 'the worker to drop the session', lastSeen: idsOf }
    await until(() => idsOf().length < 2, dropped)
    expect(idsOf()).to.deep.equal([kept])
  })

  it('a worker that drains refuses a session, even if the worker that hands it over does not know yet', async () => {
    const [leaving, draining, staying] = [await relay.worker(), await relay.worker(), await relay.worker()]
    draining.worker.isDraining = () => true
    for (let i = 0; i < 8; i++) {
      void leaving.worker.inbox.createSession(TENANT, `s${i}`, 'a1')
      await redis.connect().set(`ae:session:${TENANT} s${i}`, `${leaving.epoch} a1`)
    }
    await leaving.drain(0)
    expect([...draining.worker.sessions()]).to.deep.equal([])
    expect([...staying.worker.sessions()]).to.have.length(8)
  })
})
