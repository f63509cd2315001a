import { expect } from 'chai'
import { type MemberFields, PROTOCOL, type Probe } from '../../../shared/cluster/members/members.ts'
import { createRedisMembers } from '../../../shared/cluster/members/redis-members.ts'
import { openRedisLink, type RedisLink } from '../../../shared/platform/redis/link.ts'
import { elapsedMs } from '../../support/elapsed.ts'
import { useRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

const WORKER: MemberFields = { role: 'worker', state: 'active', load: 3, pid: 1 }
const PROBE: Probe = { channel: 'wk:1', message: Buffer.from('probe') }

describe('members in Redis', () => {
  const redis = useRedis()
  let link: RedisLink
  beforeEach(async () => {
    link = await openRedisLink(redis.url)
    await link.listen(PROBE.channel, () => {})
  })
  afterEach(() => link.close())

  it('each process that joins gets a higher epoch and is listed with its fields', async () => {
    const members = createRedisMembers(link)
    const [first, second] = [await members.join(WORKER), await members.join({ ...WORKER, role: 'gateway' })]
    expect(second).to.be.greaterThan(first)
    const { members: list } = await members.list()
    expect(list.map(({ epoch }) => epoch).sort()).to.deep.equal([first, second])
    expect(list.find(({ epoch }) => epoch === first)).to.include(WORKER)
    expect(list[0]?.expiresInMs).to.be.within(3_000, 4_000)
  })

  it('what operators are shown of a process is listed with it, and left out where another release wrote something else', async () => {
    const members = createRedisMembers(link)
    const about = { version: '0.1.0', since: '2026-11-22T10:00:00.000Z', capacity: 256 }
    const [known, other] = [await members.join({ ...WORKER, ...about }), await members.join(WORKER)]
    const record = JSON.stringify({
      protocol: PROTOCOL,
      role: 'worker',
      state: 'active',
      pid: 1,
      version: 2,
      since: null,
    })
    await redis.connect().hset('ae:{members}', other, `nonce ${record}`)
    const { members: list } = await members.list()
    expect(list.find(({ epoch }) => epoch === known)).to.include(about)
    expect(list.find(({ epoch }) => epoch === other)).to.have.property('pid', 1)
    expect(list.find(({ epoch }) => epoch === other)).not.to.have.any.keys(Object.keys(about))
  })

  it('a member is expired only when its lease has run out, and cannot renew afterwards', async () => {
    const members = createRedisMembers(link)
    const epoch = await members.join(WORKER)
    expect(await members.expire(epoch)).to.equal(false)
    expect((await members.renew(epoch, { ...WORKER, load: 9 }, PROBE)).outcome).to.equal('renewed')
    expect((await members.look([])).lapsed).to.deep.equal([])
    await redis.connect().zadd('ae:{members}:leases', 0, epoch)
    expect((await members.look([])).lapsed).to.deep.equal([epoch])
    expect(await members.expire(epoch)).to.equal(true)
    expect((await members.renew(epoch, WORKER, PROBE)).outcome).to.equal('evicted')
    expect((await members.list()).members).to.deep.equal([])
  })

  it('a lease is not renewed while nobody subscribes to the channel of the probe, and is renewed again afterwards', async () => {
    const members = createRedisMembers(link)
    const epoch = await members.join(WORKER)
    const before = await redis.connect().zscore('ae:{members}:leases', epoch)
    await link.unlisten(PROBE.channel)
    for (const probe of [PROBE, { channel: PROBE.channel }])
      expect((await members.renew(epoch, WORKER, probe)).outcome).to.equal('unheard')
    expect(await redis.connect().zscore('ae:{members}:leases', epoch)).to.equal(before)
    await link.listen(PROBE.channel, () => {})
    expect((await members.renew(epoch, WORKER, PROBE)).outcome).to.equal('renewed')
  })

  it('after an empty restart of Redis a member is registered again under its old epoch, and new epochs are still higher', async () => {
    const members = createRedisMembers(link)
    const epoch = await members.join(WORKER)
    await redis.connect().flushall()
    expect((await members.renew(epoch, WORKER, PROBE)).outcome).to.equal('keys_lost')
    expect((await members.renew(epoch, WORKER, PROBE)).outcome).to.equal('renewed')
    expect(await createRedisMembers(link).join(WORKER)).to.be.greaterThan(epoch)
  })

  it('the boot marker is current until Redis loses its keys, and again once this process has renewed', async () => {
    const [first, second] = [createRedisMembers(link), createRedisMembers(link)]
    const epoch = await first.join(WORKER)
    await second.join(WORKER)
    expect(await second.isBootMarkerCurrent()).to.equal(true)
    await redis.connect().flushall()
    expect(await first.isBootMarkerCurrent()).to.equal(false)
    await first.renew(epoch, WORKER, PROBE)
    expect(await first.isBootMarkerCurrent()).to.equal(true)
    expect(await second.isBootMarkerCurrent()).to.equal(false)
  })

  it('expiring a process that is not a member any more succeeds', async () => {
    const members = createRedisMembers(link)
    const epoch = await members.join(WORKER)
    await members.leave(epoch)
    expect(await members.expire(epoch)).to.equal(true)
  })

  it('each renewal gives the member another four seconds and publishes its new fields', async () => {
    const members = createRedisMembers(link)
    const epoch = await members.join(WORKER)
    const client = redis.connect()
    await client.zincrby('ae:{members}:leases', -3_000, String(epoch))
    await members.renew(epoch, { ...WORKER, state: 'draining', load: 9 }, PROBE)
    const [member] = (await members.list()).members
    expect(member).to.include({ epoch, state: 'draining', load: 9 })
    expect(member?.expiresInMs).to.be.within(3_000, 4_000)
  })

  it('each change of the members is announced once, in order; a renewal with another load is none', async () => {
    const [watching, members] = [createRedisMembers(link), createRedisMembers(link)]
    const changes: [version: number, epoch: number, state: string | undefined][] = []
    await watching.watch(({ version, epoch, member }) => changes.push([version, epoch, member?.state]))
    const { version } = await watching.look([])
    const epoch = await members.join(WORKER)
    await members.renew(epoch, { ...WORKER, load: 9 }, PROBE)
    await members.renew(epoch, { ...WORKER, state: 'draining' }, PROBE)
    await members.leave(epoch)
    await members.leave(epoch)
    const look = await watching.look([epoch])
    await until(() => changes.length >= 3, { what: 'the changes' })
    const first = changes[0]?.[0] ?? 0
    expect(first).to.be.above(version)
    expect(changes).to.deep.equal([
      [first, epoch, 'active'],
      [first + 1, epoch, 'draining'],
      [first + 2, epoch, undefined],
    ])
    expect(look).to.deep.equal({ version: first + 2, lapsed: [], loads: [0] })
  })

  it('1,000 members are listed in pieces, each of them once', async () => {
    const members = createRedisMembers(link)
    await members.join(WORKER)
    const client = redis.connect()
    const [[, record] = []] = Object.entries(await client.hgetall('ae:{members}'))
    const epochs = Array.from({ length: 1_000 }, (_, i) => i + 1)
    await client.hset('ae:{members}', Object.fromEntries(epochs.map((epoch) => [epoch, record])))
    await client.zadd('ae:{members}:leases', ...epochs.flatMap((epoch) => [10_000_000_000_000 + epoch, epoch]))
    await client.hset('ae:{members}:loads', Object.fromEntries(epochs.map((epoch) => [epoch, epoch % 7])))
    const sizes: number[] = []
    const run: RedisLink['run'] = async (...args) => {
      const answer = await link.run(...args)
      sizes.push(JSON.stringify(answer).length)
      return answer
    }
    const { members: list } = await createRedisMembers({ ...link, run }).list()
    expect(list.length).to.equal(1_001)
    expect(Math.max(...sizes)).to.be.below(50_000)
    const added = list.filter(({ epoch }) => epoch <= 1_000).sort((a, b) => a.epoch - b.epoch)
    expect(added.map(({ epoch }) => epoch)).to.deep.equal(epochs)
    for (const { epoch, load, expiresInMs, ...fields } of added) {
      expect({ ...fields, load }).to.deep.equal({ ...WORKER, load: epoch % 7 })
      expect(expiresInMs).to.be.above(4_000)
    }
  })

  it('a renewal without other fields does not send them, and still finds an eviction and a record of another process', async () => {
    const sent: { name: string; bytes: number }[] = []
    const run: RedisLink['run'] = (script, keys, args) => {
      sent.push({ name: script.name, bytes: JSON.stringify([keys, args]).length })
      return link.run(script, keys, args)
    }
    const members = createRedisMembers({ ...link, run })
    const epoch = await members.join(WORKER)
    const renew = async (fields: MemberFields) => {
      sent.length = 0
      const { outcome } = await members.renew(epoch, fields, { channel: PROBE.channel })
      return [outcome, ...sent.map(({ name }) => name)]
    }
    expect(await renew({ ...WORKER, load: 9 })).to.deep.equal(['renewed', 'aeExtend'])
    expect(sent[0]?.bytes).to.be.below(270)
    expect((await members.list()).members[0]).to.include({ epoch, load: 9 })
    expect(await renew({ ...WORKER, state: 'draining' })).to.deep.equal(['renewed', 'aeRenew'])
    expect(await renew({ ...WORKER, state: 'draining' })).to.deep.equal(['renewed', 'aeExtend'])
    expect((await members.list()).members[0]).to.include({ epoch, state: 'draining' })
    const client = redis.connect()
    const record = (await client.hget('ae:{members}', String(epoch))) ?? ''
    await client.hset('ae:{members}', epoch, `another${record.slice('another'.length)}`)
    expect(await renew({ ...WORKER, state: 'draining' })).to.deep.equal(['evicted', 'aeExtend', 'aeRenew'])
    await client.hset('ae:{members}', epoch, record)
    expect(await renew({ ...WORKER, state: 'draining' })).to.deep.equal(['renewed', 'aeExtend'])
    await members.leave(epoch)
    expect(await renew({ ...WORKER, state: 'draining' })).to.deep.equal(['evicted', 'aeExtend', 'aeRenew'])
  })

  it('a look reads the loads of the members that it asks for', async () => {
    const members = createRedisMembers(link)
    const [one, two] = [await members.join(WORKER), await members.join({ ...WORKER, load: 7 })]
    expect((await members.look([two, 5, one])).loads).to.deep.equal([7, 0, 3])
  })

  it('a member that leaves is not listed any more', async () => {
    const members = createRedisMembers(link)
    const epoch = await members.join(WORKER)
    await members.leave(epoch)
    expect((await members.list()).members).to.deep.equal([])
  })

  it('while Redis is suspended a command is 503 within two seconds or so, and works again afterwards', async () => {
    const members = createRedisMembers(link)
    await members.join(WORKER)
    await redis.server.kill('SIGSTOP')
    const since = elapsedMs()
    const error = await members.list().catch((cause: unknown) => cause)
    expect(error).to.include({ kind: 'unavailable', retryAfterSecs: 2 })
    expect(elapsedMs() - since).to.be.lessThan(2_500)
    expect(link.awayMs()).to.be.greaterThan(0)
    await redis.server.kill('SIGCONT')
    await until(async () => (await members.list().catch(() => undefined)) !== undefined, {
      what: 'Redis to answer again',
    })
    expect(link.awayMs()).to.equal(0)
  })

  it('a Redis that may evict keys is refused, and no connection to it stays open', async () => {
    const client = redis.connect()
    const clients = async () =>
      String(await client.client('LIST'))
        .trim()
        .split('\n').length
    const before = await clients()
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
    try {
      const error = await openRedisLink(redis.url).catch((cause: unknown) => cause)
      expect(error).to.be.instanceOf(Error).with.property('message').that.includes('noeviction')
      await until(async () => (await clients()) <= before, { what: 'the connections to close', lastSeen: () => before })
    } finally {
      await client.config('SET', 'maxmemory-policy', 'noeviction')
    }
  })
})
