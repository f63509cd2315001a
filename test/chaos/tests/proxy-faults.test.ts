import { once } from 'node:events'
import { expect } from 'chai'
import { Random } from '../../harness/seed.ts'
import { until } from '../../support/until.ts'
import type { Faults } from '../proxy/faults.ts'
import { startRedisProxy } from '../redis-proxy.ts'
import { next, numbers, rawConnection, receive, useProxy } from './proxy-setup.ts'

describe('the faults of the Redis proxy', () => {
  const bed = useProxy()

  it('a subscriber whose connection is reset within a message subscribes again and receives later messages', async () => {
    const subscriber = await bed.subscribe()
    const again = next(subscriber, 'ready')
    expect(bed.proxy.reset('subscribers', 5000)).to.equal(1)
    await bed.publish(numbers(1000).map((n) => `${n} ${'x'.repeat(20)}`))
    await again
    expect(bed.proxy.stats).to.include({ resets: 1, connections: 2 })
    const received = receive(subscriber, 'end')
    const publisher = bed.redis.connect()
    await until(() => publisher.publish('c', 'probe'), { what: 'the new subscription' })
    await bed.publish(['end'])
    expect((await received).at(-1)).to.equal('end')
  })

  it('a reset cuts after the same number of bytes for the same seed', async () => {
    const lengths: number[] = []
    for (let run = 0; run < 2; run++) {
      await using own = await startRedisProxy({ target: bed.redis.url, random: new Random(9) })
      await bed.redis.connect().set('a', 'x'.repeat(100_000))
      const socket = await rawConnection(own)
      const failed = next(socket, 'close')
      let length = 0
      socket.on('data', (bytes) => (length += bytes.length))
      socket.write('PING\r\n')
      await once(socket, 'data')
      own.reset('one', 50_000)
      socket.write('GET a\r\n')
      await failed
      lengths.push(length)
    }
    expect(lengths[0]).to.equal(lengths[1]).and.to.be.within(8, 50_007)
  })

  it('can reset only the connections of subscribers', async () => {
    const client = bed.redis.connect({}, bed.proxy.url)
    await client.ping()
    await bed.subscribe()
    expect(bed.proxy.reset('subscribers')).to.equal(1)
    expect(await client.ping()).to.equal('PONG')
    expect(bed.proxy.stats.resets).to.equal(1)
  })

  it('a blackhole keeps connections open, and everything arrives after it', async () => {
    const subscriber = await bed.subscribe()
    const client = bed.redis.connect({ commandTimeout: 500 }, bed.proxy.url)
    await client.ping()
    await bed.proxy.mode({ blackhole: 'both' })
    expect(await client.set('a', '1').catch(String)).to.include('timed out')
    const received = receive(subscriber, 'end')
    await bed.publish([...numbers(100), 'end'])
    expect(await bed.redis.connect().get('a')).to.equal(null)
    expect(bed.proxy.stats.messages).to.equal(0)
    await bed.proxy.mode()
    expect(await received).to.deep.equal([...numbers(100).map(String), 'end'])
    expect(await bed.redis.connect({}, bed.proxy.url).get('a')).to.equal('1')
    expect(bed.proxy.stats.resets).to.equal(0)
  })

  it('a blackhole in one direction delivers commands but not their answers', async () => {
    const client = bed.redis.connect({ commandTimeout: 500 }, bed.proxy.url)
    await client.ping()
    await bed.proxy.mode({ blackhole: 'toClient' })
    expect(await client.set('a', '1').catch(String)).to.include('timed out')
    expect(await bed.redis.connect().get('a')).to.equal('1')
    await bed.proxy.mode({ blackhole: 'toServer' })
    expect(await client.set('a', '2').catch(String)).to.include('timed out')
    expect(await bed.redis.connect().get('a')).to.equal('1')
  })

  it('the connection of a client that ends in a blackhole closes when the blackhole ends', async () => {
    const client = bed.redis.connect({}, bed.proxy.url)
    await client.ping()
    await bed.proxy.mode({ blackhole: 'both' })
    client.disconnect()
    expect(bed.proxy.stats.open).to.equal(1)
    await bed.proxy.mode()
    await until(() => bed.proxy.stats.open === 0, { what: 'the connection to close', lastSeen: () => bed.proxy.stats })
  })

  const SHAPES: [string, Faults, number][] = [
    ['latency and jitter delay, and keep the order', { latencyMs: 30, jitterMs: 20 }, 30],
    ['a narrow link delays by its bandwidth, and keeps the order', { bytesPerSec: 100_000 }, 40],
    ['slices keep the order', { sliceBytes: 7 }, 0],
    [
      'all faults at the same time keep the order',
      { latencyMs: 10, jitterMs: 10, bytesPerSec: 500_000, sliceBytes: 500 },
      10,
    ],
  ]
  for (const [name, faults, minMs] of SHAPES)
    it(name, async () => {
      const subscriber = await bed.subscribe()
      const received = receive(subscriber, 'end')
      await bed.proxy.mode(faults)
      const start = performance.now()
      for (let batch = 0; batch < 10; batch++) await bed.publish(numbers(20).map((n) => batch * 20 + n))
      await bed.publish(['end'])
      expect(await received).to.deep.equal([...numbers(200).map(String), 'end'])
      expect(performance.now() - start).to.be.at.least(minMs - 1)
    })

  it('a slice is never larger than its limit', async () => {
    await bed.redis.connect().set('a', 'x'.repeat(500))
    const socket = await rawConnection(bed.proxy)
    await bed.proxy.mode({ sliceBytes: 3 })
    const sizes: number[] = []
    socket.on('data', (bytes) => sizes.push(bytes.length))
    socket.write('GET a\r\n')
    while (sizes.reduce((sum, size) => sum + size, 0) < 508) await once(socket, 'data')
    expect(sizes.length).to.be.above(100)
    socket.destroy()
  })

  it('can refuse new connections while it keeps the old ones', async () => {
    const client = bed.redis.connect({}, bed.proxy.url)
    await client.ping()
    await bed.proxy.mode({ refuse: true })
    const refused = bed.redis.connect({ retryStrategy: () => null }, bed.proxy.url)
    const [failure] = (await once(refused, 'error', {})) as [NodeJS.ErrnoException]
    expect(failure.code).to.equal('ECONNREFUSED')
    expect(await client.ping()).to.equal('PONG')
    await bed.proxy.mode()
    expect(await bed.redis.connect({}, bed.proxy.url).ping()).to.equal('PONG')
  })

  it('when the server dies its clients are disconnected, and they reconnect after its restart', async () => {
    const client = bed.redis.connect({ retryStrategy: () => 5 }, bed.proxy.url)
    await client.ping()
    const closed = next(client, 'close')
    await bed.redis.server.kill('SIGKILL')
    await closed
    await bed.redis.server.restart()
    expect(await client.ping()).to.equal('PONG')
  })
})
