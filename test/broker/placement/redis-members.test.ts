import { expect } from 'chai'
import type { MemberFields } from '../../../shared/broker/placement/members.ts'
import { createRedisMembers } from '../../../shared/broker/placement/redis-members.ts'
import { openRedisLink, type RedisLink } from '../../../shared/broker/redis-link.ts'
import { useRedis } from '../../support/redis.ts'

const WORKER: MemberFields = { role: 'worker', state: 'active', load: 3, pid: 1 }

describe('members in Redis', () => {
  const redis = useRedis()
  let link: RedisLink
  beforeEach(async () => {
    link = await openRedisLink(redis.url)
  })
  afterEach(() => link.close())

  it('design §4.6: each process that joins gets a higher epoch, and is listed with what it tells', async () => {
    const members = createRedisMembers(link)
    const [first, second] = [await members.join(WORKER), await members.join({ ...WORKER, role: 'gateway' })]
    expect(second).to.be.greaterThan(first)
    const list = await members.list()
    expect(list.map(({ epoch }) => epoch).sort()).to.deep.equal([first, second])
    expect(list.find(({ epoch }) => epoch === first)).to.include(WORKER)
    expect(list[0]?.expiresInMs).to.be.within(3_000, 4_000)
  })

  it('a member that lives cannot be judged; one whose lease is over can, and then cannot renew', async () => {
    const members = createRedisMembers(link)
    const epoch = await members.join(WORKER)
    expect(await members.expire(epoch)).to.equal(false)
    expect(await members.renew(epoch, { ...WORKER, load: 9 })).to.equal('renewed')
    const client = redis.connect()
    const entry = JSON.parse((await client.hget('ae:members', String(epoch))) ?? '')
    await client.hset('ae:members', String(epoch), JSON.stringify({ ...entry, until_ms: 0 }))
    expect(await members.expire(epoch)).to.equal(true)
    expect(await members.renew(epoch, WORKER)).to.equal('dead')
    expect(await members.list()).to.deep.equal([])
  })

  it('design §4.6: after an empty restart of Redis a member enters again under the epoch it had, once', async () => {
    const members = createRedisMembers(link)
    const epoch = await members.join(WORKER)
    await redis.connect().flushall()
    expect(await members.renew(epoch, WORKER)).to.equal('empty')
    expect(await members.renew(epoch, WORKER)).to.equal('renewed')
    expect(await createRedisMembers(link).join(WORKER)).to.be.greaterThan(epoch)
  })

  it('a member that leaves is gone at once', async () => {
    const members = createRedisMembers(link)
    const epoch = await members.join(WORKER)
    await members.leave(epoch)
    expect(await members.list()).to.deep.equal([])
  })

  it('design §4: while Redis is away a command is unavailable within a second or so, and works again afterwards', async () => {
    const members = createRedisMembers(link)
    await members.join(WORKER)
    await redis.server.kill('SIGSTOP')
    const since = performance.now()
    const error = await members.list().catch((cause: unknown) => cause)
    expect(error).to.include({ kind: 'unavailable', retryAfterSecs: 2 })
    expect(performance.now() - since).to.be.lessThan(2_500)
    expect(link.awayMs()).to.be.greaterThan(0)
    await redis.server.kill('SIGCONT')
    while ((await members.list().catch(() => [])).length === 0);
    expect(link.awayMs()).to.equal(0)
  })

  it('a Redis that would forget keys is refused, and no connection to it is left', async () => {
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
      while ((await clients()) > before);
    } finally {
      await client.config('SET', 'maxmemory-policy', 'noeviction')
    }
  })
})
