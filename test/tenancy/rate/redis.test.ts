import { expect } from 'chai'
import { createLog } from '../../../shared/kernel/log.ts'
import { openRedisLink, type RedisLink } from '../../../shared/platform/redis/link.ts'
import { MemoryRateLimiter } from '../../../shared/tenancy/rate/memory.ts'
import type { RateLimiter } from '../../../shared/tenancy/rate/port.ts'
import { RedisRateLimiter } from '../../../shared/tenancy/rate/redis.ts'
import { elapsedMs } from '../../support/elapsed.ts'
import { useRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

describe('the sliding window in Redis', () => {
  const redis = useRedis()
  const links: RedisLink[] = []
  const lines: string[] = []
  const askedAt: number[] = []
  const log = createLog({ level: 'info', write: (line) => lines.push(line) })
  afterEach(async () => {
    lines.length = 0
    for (const link of links.splice(0)) await link.close()
  })

  /** The limiter of another gateway. */
  async function open(perMinute: number, windowMs?: number): Promise<RateLimiter> {
    const link = await openRedisLink(redis.url)
    links.push(link)
    const fallback = new MemoryRateLimiter({ perMinute })
    const run: RedisLink['run'] = (...args) => {
      askedAt.push(performance.now())
      return link.run(...args)
    }
    return new RedisRateLimiter({ run, perMinute, fallback, log, ...(windowMs && { windowMs }) })
  }

  it('api.md Limits: of many concurrent requests through two gateways exactly the limit is allowed', async () => {
    const gateways = [await open(7), await open(7)]
    const all = Array.from({ length: 20 }, () => gateways.map(async (limiter) => limiter.take('a'))).flat()
    const taken = await Promise.all(all)
    const allowed = taken.filter(({ isAllowed }) => isAllowed)
    expect(allowed.map(({ remaining }) => remaining)).to.have.members([6, 5, 4, 3, 2, 1, 0])
    for (const one of taken) {
      expect(one.limit).to.equal(7)
      expect(one.resetSecs).to.be.within(59, 60)
      if (!one.isAllowed) expect(one.remaining).to.equal(0)
    }
  })

  it('api.md Limits: the window slides, and refused requests do not count', async () => {
    const WINDOW = 400
    const [limiter, other] = [await open(2, WINDOW), await open(2, WINDOW)]
    const times: number[] = []
    for (const end = performance.now() + 10 * WINDOW; times.length < 6; ) {
      if (performance.now() > end) expect.fail(`only ${times.length / 2} of 3 requests were allowed`)
      const from = performance.now()
      const { isAllowed } = await (times.length % 2 ? limiter : other).take('a')
      if (isAllowed) times.push(from, performance.now())
    }
    // Three requests are allowed: the third not before the first has left the window, however often it was refused.
    const [firstFrom = 0, , , , , thirdBy = 0] = times
    expect(thirdBy - firstFrom).to.be.at.least(WINDOW - 1)
  })

  it('clients do not share their counts', async () => {
    const limiter = await open(1)
    const taken = await Promise.all(['a', 'b', 'a'].map(async (key) => limiter.take(key)))
    expect(taken.map(({ isAllowed }) => isAllowed)).to.deep.equal([true, true, false])
  })

  it('a client that sends no more requests leaves nothing in Redis', async () => {
    const limiter = await open(5, 200)
    await limiter.take('a')
    const client = redis.connect()
    expect(await client.pttl('ae:rate:a')).to.be.within(1, 200)
    await until(async () => (await client.exists('ae:rate:a')) === 0, { what: 'the count to expire' })
  })

  it('while Redis hangs one request waits a quarter of a second, then each gateway counts for itself and logs that once', async () => {
    const limiter = await open(3)
    await limiter.take('a')
    await redis.server.kill('SIGSTOP')
    const begun = elapsedMs()
    const taken = []
    for (let i = 0; i < 4; i++) taken.push(await limiter.take('a'))
    expect(elapsedMs() - begun).to.be.lessThan(900)
    expect(taken.map(({ isAllowed }) => isAllowed)).to.deep.equal([true, true, true, false])
    expect(lines).to.have.length(1)
    expect(lines[0]).to.include('each gateway counts the rate limit for itself')
    await redis.server.kill('SIGCONT')
    const isReported = async () => {
      await limiter.take('b')
      return lines.length >= 2
    }
    await until(isReported, { what: 'the log line about the shared count', lastSeen: () => lines })
    expect(lines[1]).to.include('counted across gateways')
  })

  it('while Redis hangs one request a second waits for it, and the others are served at once', async () => {
    const limiter = await open(Number.MAX_SAFE_INTEGER)
    await redis.server.kill('SIGSTOP')
    askedAt.length = 0
    let served = 0
    const countUntilAsked = async () => {
      await limiter.take('a')
      served += 1
      return askedAt.length >= 2
    }
    await until(countUntilAsked, { what: 'Redis to be asked again' })
    const [first = 0, second = 0] = askedAt
    expect(second - first).to.be.at.least(1_000)
    expect(served).to.be.above(2)
  })

  it('while Redis is down requests are served and the limit still holds', async () => {
    const limiter = await open(2)
    await redis.server.kill('SIGKILL')
    const taken = []
    for (let i = 0; i < 3; i++) taken.push(await limiter.take('a'))
    expect(taken.map(({ isAllowed }) => isAllowed)).to.deep.equal([true, true, false])
  })
})
