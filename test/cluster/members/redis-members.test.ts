// Tests redis-members.ts and redis-member-scripts.ts: the scripts run in a real Redis.

import { expect } from 'chai'
import { type MemberFields, PROTOCOL } from '../../../shared/cluster/members/members.ts'
import { createRedisMembers } from '../../../shared/cluster/members/redis-members.ts'
import { openRedisLink, type RedisLink } from '../../../shared/platform/redis/link.ts'
import { membersContract, PROBE, WORKER } from '../../contract/members.ts'
import { elapsedMs } from '../../support/elapsed.ts'
import { useRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

describe('members in Redis', () => {
  const redis = useRedis()
  const links: RedisLink[] = []
  const connect = async () => {
    const bus = await openRedisLink(redis.url)
    links.push(bus)
    return { bus, members: createRedisMembers(bus) }
  }
  let link: RedisLink
  beforeEach(async () => {
    link = (await connect()).bus
  })
  afterEach(async () => {
    for (const each of links.splice(0)) await each.close()
  })

  membersContract({
    connect,
    async lapse() {
      const client = redis.connect()
      for (const epoch of await client.hkeys('ae:{members}')) await client.zadd('ae:{members}:leases', 0, epoch)
    },
    async loseKeys() {
      await redis.connect().flushall()
    },
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
    await link.subscribe(PROBE.channel, () => {})
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
