import { once } from 'node:events'
import { expect } from 'chai'
import { Random } from '../../harness/seed.ts'
import { dropByChance, dropEvery } from '../proxy/faults.ts'
import { startRedisProxy } from '../redis-proxy.ts'
import { numbers, receive, useProxy } from './proxy-setup.ts'

describe('the Redis proxy', () => {
  const bed = useProxy()

  it('without faults is transparent: pipelines, binary values, large values, blocking commands', async () => {
    const client = bed.redis.connect({}, bed.proxy.url)
    const large = Buffer.alloc(5_000_000, 'x\r\n$')
    const replies = await client
      .pipeline()
      .set('a', large)
      .getBuffer('a')
      .lpush('l', '1', '2')
      .hset('h', 'f', 'v')
      .exec()
    expect(replies?.[1]?.[1]).to.satisfy((value: Buffer) => value.equals(large))
    const popped = bed.redis.connect({}, bed.proxy.url).blpop('later', 5)
    await client.rpush('later', 'now')
    expect(await popped).to.deep.equal(['later', 'now'])
    expect(await client.hgetall('h')).to.deep.equal({ f: 'v' })
  })

  for (const protocol of [2, 3] as const) {
    it(`in RESP ${protocol} drops exactly every n-th message and loses or reorders nothing else`, async () => {
      const subscriber = await bed.subscribe(protocol)
      const received = receive(subscriber, 'end')
      await bed.proxy.mode({ drop: dropEvery(10) })
      await bed.publish([...numbers(5000), 'end'])
      const expected = numbers(5000).filter((n) => n % 10 !== 0)
      expect(await received).to.deep.equal([...expected.map(String), 'end'])
      expect(bed.proxy.stats).to.include({ messages: 5001, dropped: 500, unreadable: 0, resets: 0 })
    })
  }

  it('drops the same messages by chance for the same seed', async () => {
    const runs: string[][] = []
    for (let run = 0; run < 2; run++) {
      const subscriber = await bed.subscribe()
      const received = receive(subscriber, 'end')
      const drop = dropByChance(0.2, new Random(5))
      await bed.proxy.mode({ drop: (message) => message.payload.toString() !== 'end' && drop(message) })
      await bed.publish([...numbers(500), 'end'])
      runs.push(await received)
      subscriber.disconnect()
    }
    expect(runs[0]).to.deep.equal(runs[1])
    expect(runs[0]).to.have.length.within(350, 450)
  })

  it('drops by channel and payload, also for pattern subscriptions and payloads of many chunks', async () => {
    const subscriber = bed.redis.connect({}, bed.proxy.url)
    await subscriber.psubscribe('ae:*')
    const received: string[] = []
    const end = once(subscriber, 'pmessageBuffer')
    subscriber.on('pmessageBuffer', (_pattern: string, channel: Buffer, message: Buffer) =>
      received.push(`${channel.toString()}:${message.length}`),
    )
    await bed.proxy.mode({ drop: ({ channel, payload }) => channel === 'ae:gw' && payload.length > 1_000_000 })
    const publisher = bed.redis.connect()
    const large = Buffer.alloc(3_000_000, 1)
    await publisher.publish('ae:gw', large)
    await publisher.publish('ae:wk', large)
    await publisher.publish('ae:gw', 'small')
    await end
    while (received.length < 2) await once(subscriber, 'pmessageBuffer')
    expect(received).to.deep.equal(['ae:wk:3000000', 'ae:gw:5'])
  })

  it('never drops a reply that looks like a message', async () => {
    await bed.proxy.mode({ drop: () => true })
    const client = bed.redis.connect({ protocol: 2 }, bed.proxy.url)
    await client.rpush('l', 'message', 'c', 'x')
    expect(await client.lrange('l', 0, -1)).to.deep.equal(['message', 'c', 'x'])
  })

  it('keeps user, password and database of the server’s URL', async () => {
    await using own = await startRedisProxy({ target: 'redis://u:p@127.0.0.1:7/3', random: new Random(1) })
    expect(own.url).to.match(/^redis:\/\/u:p@127\.0\.0\.1:\d+\/3$/)
  })
})
