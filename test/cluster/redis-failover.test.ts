import { expect } from 'chai'
import type { ChannelProbe, MemberFields } from '../../shared/cluster/members/members.ts'
import { createRedisMembers } from '../../shared/cluster/members/redis-members.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { openRedisLink } from '../../shared/platform/redis/link.ts'
import { type RedisGroup, startRedisGroup } from '../support/redis-group.ts'
import { createTestRelay } from '../support/relay.ts'
import { until } from '../support/until.ts'

type Members = ReturnType<typeof createRedisMembers>

const TENANT = DEFAULT_TENANT
const WORKER: MemberFields = { role: 'worker', state: 'active', load: 0, pid: 1 }
const PROBE: ChannelProbe = { channel: 'wk:1', message: Buffer.from('probe') }

const statusOf = (act: Promise<unknown>): Promise<number> =>
  act.then(
    () => 200,
    (cause: unknown) => (cause instanceof AppError ? cause.status : Promise.reject(cause)),
  )

describe('after Redis has failed over to a replica that lags', () => {
  let group: RedisGroup
  const relay = createTestRelay(() => group.url)
  beforeEach(async () => {
    group = await startRedisGroup()
  })
  afterEach(async () => {
    await relay.close()
    await group.stop()
  })

  it('no epoch is given out twice, and a member that the replica does not know is registered again', async () => {
    const link = await openRedisLink(group.url)
    await link.subscribe(PROBE.channel, () => {})
    const [early, late, next] = [createRedisMembers(link), createRedisMembers(link), createRedisMembers(link)]
    const known = await early.join(WORKER)
    await group.synchronized()
    await group.lag()
    const unknown = await late.join(WORKER)
    await group.failOver()
    const joined = await until(() => next.join(WORKER).catch(() => 0), { what: 'the new primary to answer' })
    expect(joined).to.be.above(unknown)
    const renew = (members: Members, epoch: number) =>
      members.renew(epoch, WORKER, PROBE).then(
        ({ outcome }) => outcome,
        () => 'unheard',
      )
    await until(async () => (await renew(next, joined)) === 'renewed', { what: 'the subscription on the new primary' })
    expect([await early.isBootMarkerCurrent(), await next.isBootMarkerCurrent()]).to.deep.equal([false, true])
    expect([await renew(early, known), await renew(late, unknown)]).to.deep.equal(['keys_lost', 'keys_lost'])
    expect([await renew(early, known), await renew(late, unknown)]).to.deep.equal(['renewed', 'renewed'])
    expect((await next.list()).members.map(({ epoch }) => epoch).sort()).to.deep.equal([known, unknown, joined])
    await link.close()
  })

  it('of two processes with one epoch only the one whose nonce is in the record renews', async () => {
    const link = await openRedisLink(group.url)
    await link.subscribe(PROBE.channel, () => {})
    const [first, second] = [createRedisMembers(link), createRedisMembers(link)]
    const epoch = await first.join(WORKER)
    await second.join(WORKER)
    expect((await second.renew(epoch, WORKER, PROBE)).outcome).to.equal('evicted')
    expect((await first.renew(epoch, WORKER, PROBE)).outcome).to.equal('renewed')
    await link.close()
  })

  it('every session is served again: also one that the replica does not know, and one that it gives to a worker that has left', async () => {
    const leaving = await relay.worker()
    const { broker } = await relay.gateway()
    const { session_id: moved } = await broker.createSession(TENANT)
    await group.synchronized()
    await group.lag()
    const staying = await relay.worker()
    await leaving.drain(0)
    await leaving.leave()
    const ids = [moved]
    while (ids.length < 8) ids.push((await broker.createSession(TENANT)).session_id)
    await group.failOver()
    const seen = new Set<number>()
    const areServed = async () => {
      const statuses = await Promise.all(ids.map((id) => statusOf(broker.getSession(TENANT, id))))
      for (const status of statuses.slice(1)) seen.add(status)
      return statuses.every((status) => status === 200)
    }
    await until(areServed, { what: 'all sessions to be served', lastSeen: () => [...seen] })
    expect([...seen].sort()).to.deep.equal([200, 503])
    const again = () => Promise.all(ids.map((id) => statusOf(broker.createSession(TENANT, id))))
    // 503 while claims may still be missing.
    const answered = async () => {
      const statuses = await again()
      return !statuses.includes(503) && statuses
    }
    const statuses = await until(answered, { what: 'creations to be answered' })
    expect(statuses).to.deep.equal(ids.map(() => 409))
    expect([...staying.worker.sessions()]).to.have.length(8)
  })
})
