import { expect } from 'chai'
import { Lease } from '../../../shared/cluster/members/lease.ts'
import type { Moment } from '../../../shared/cluster/members/moment.ts'
import { openWorkerPermissionStore } from '../../../shared/cluster/permissions/redis-store.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { newRequest } from '../../contract/pending-permission.ts'
import { useRedis } from '../../support/redis.ts'
import { createTestRelay } from '../../support/relay.ts'
import { until } from '../../support/until.ts'

const TENANT = DEFAULT_TENANT

const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length

/** A lease that can be withheld however often it is renewed. */
class WithheldLease extends Lease {
  isWithheld = false
  renewals = 0

  override isHeld(): boolean {
    return !this.isWithheld && super.isHeld()
  }

  override renewed(requestedAt: Moment): void {
    this.renewals++
    super.renewed(requestedAt)
  }
}

describe('relays over Redis', () => {
  const redis = useRedis()
  const relay = createTestRelay(() => redis.url)
  afterEach(() => relay.close())

  it('a worker sends no frame while its lease is not held, and all of them once it is held again', async () => {
    const lease = new WithheldLease()
    await relay.worker({ relay: { lease } })
    const { broker } = await relay.gateway()
    lease.isWithheld = true
    const { runId, frames } = await broker.startRun(TENANT, { prompt: '/say one' })
    let text = ''
    const reading = (async () => {
      for await (const chunk of frames) text += Buffer.from(chunk.text)
    })()
    await until(async () => (await broker.getRun(TENANT, runId)).status === 'done', { what: 'the run to end' })
    const { renewals } = lease
    await until(() => lease.renewals > renewals + 1, { what: 'two renewals of the lease' })
    expect(text).to.equal('')
    lease.isWithheld = false
    await reading
    expect(text).to.include('id: 1\n').and.include('event: done')
  })

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

  it('the requests of a worker that is not alive are not listed', async () => {
    const worker = await relay.worker()
    const { broker, link } = await relay.gateway()
    const store = await openWorkerPermissionStore(link, 1)
    const runOf = (epoch: number) => `run_${epoch.toString(16).padStart(8, '0')}${'0'.repeat(24)}`
    const alive = newRequest({ runId: runOf(worker.epoch) })
    for (const request of [newRequest({ runId: runOf(worker.epoch + 1) }), alive]) await store.open(request)
    const { permissions } = await broker.listPermissions(TENANT, { limit: 10 })
    expect(permissions.map(({ id }) => id)).to.deep.equal([alive.id])
  })

  it('a draining gateway is not ready at once, serves on for the grace time, and refuses streams afterwards', async () => {
    await relay.worker()
    const gateway = await relay.gateway()
    const drained = gateway.drain({ graceMs: 300, streamsMs: 0 })
    expect(gateway.readiness().isDraining).to.equal(true)
    const { frames } = await gateway.broker.startRun(TENANT, { prompt: '/say hi' })
    await frames[Symbol.asyncIterator]().return?.()
    await drained
    for (const open of [
      () => gateway.broker.startRun(TENANT, { prompt: '/say hi' }),
      () => gateway.broker.followRun(TENANT, 'run_0', 0),
    ]) {
      const cause = await open().catch((error: unknown) => error)
      expect(cause).to.include({ kind: 'unavailable' }).and.have.property('message').that.includes('shutting down')
    }
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

  it('a session with a live run is handed over when the run has ended, with its messages', async () => {
    const leaving = await relay.worker({ limits: { runResumeMs: 10 } })
    const { broker } = await relay.gateway()
    const { session_id: id } = await broker.createSession(TENANT)
    const { frames } = await broker.sendMessage(TENANT, id, { prompt: '/sleep 300\n/say one' })
    const staying = await relay.worker()
    const drained = leaving.drain(60_000)
    for await (const _ of frames);
    await drained
    expect(Array.from(staying.worker.sessions(), (session) => session.summary.message_count)).to.deep.equal([2])
  })

  it('a stopped gateway or worker is not a member and leaves no timer', async () => {
    for (const open of [() => relay.gateway(), () => relay.worker()]) {
      const member = await open()
      const running = timers()
      await member.stop()
      await until(() => timers() <= running - 2, { what: 'both of its timers to end' })
      expect(await redis.connect().hlen('ae:{members}')).to.equal(0)
    }
  })
})
