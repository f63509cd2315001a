import { mock } from 'node:test'
import { expect } from 'chai'
import type { Cluster } from 'ioredis'
import { createRedisClient, retryStrategy } from '../../../shared/platform/redis/connect.ts'

describe('connections to Redis', () => {
  it('are tried again after at most half a second', () => {
    expect([1, 2, 9, 10, 1_000].map(retryStrategy)).to.deep.equal([50, 100, 450, 500, 500])
  })

  describe('to a Redis Cluster', () => {
    beforeEach(() => mock.timers.enable({ apis: ['setInterval'] }))
    afterEach(() => mock.timers.reset())

    it('read every 5 s which node has which slot, as long as they are open', () => {
      const nodes = [{ host: '127.0.0.1', port: 1 }]
      const client = createRedisClient(
        'redis://127.0.0.1:1',
        { cluster: nodes },
        { maxRetriesPerRequest: 0 },
      ) as Cluster
      let reads = 0
      client.refreshSlotsCache = () => void reads++
      const readsIn = (ms: number) => {
        const before = reads
        mock.timers.tick(ms)
        return reads - before
      }
      expect(readsIn(10_000)).to.equal(0)
      client.emit('ready')
      client.emit('ready') // After a reconnection.
      expect(readsIn(10_000)).to.equal(2)
      client.emit('end')
      expect(readsIn(10_000)).to.equal(0)
      client.emit('ready')
      expect(readsIn(5_000)).to.equal(1)
      client.emit('end')
      // Its timer stays when the client is closed while the slots are read.
      expect(client.options.slotsRefreshInterval).to.equal(0)
    })
  })
})
