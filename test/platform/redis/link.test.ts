import { expect } from 'chai'
import { createRedisMembers } from '../../../shared/cluster/members/redis-members.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import { useRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

const STALL_MS = 1_200
const PROBE = { channel: 'wk:test', message: Buffer.from('probe') }

describe('a process that could not run for longer than a command may take', () => {
  const redis = useRedis()

  it('takes the answer that has come meanwhile', async () => {
    const link = await openRedisLink(redis.url)
    try {
      await link.subscribe(PROBE.channel, () => {})
      const answer = link.publish(PROBE.channel, PROBE.message)
      await new Promise(setImmediate) // It is on its way.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS)
      expect([await answer, link.awayMs()]).to.deep.equal([1, 0])
    } finally {
      await link.close()
    }
  })
})

describe('a Redis whose memory is used up', () => {
  const redis = useRedis()

  it('is reported as full as long as it refuses the renewal of a lease, and not as away', async () => {
    const link = await openRedisLink(redis.url)
    const admin = redis.connect()
    try {
      const fields = { role: 'worker', state: 'active', load: 0, pid: 1 } as const
      const members = createRedisMembers(link)
      const epoch = await members.join(fields)
      await link.subscribe(PROBE.channel, () => {})
      expect(link.isFull()).to.equal(false)
      await admin.config('SET', 'maxmemory', '1')
      const failure = await members.renew(epoch, fields, PROBE).catch((cause: unknown) => cause)
      expect(failure).to.include({ kind: 'unavailable' })
      expect(link.isFull()).to.equal(true)
      await members.list() // A command that only reads is answered, and does not hide it.
      expect([link.isFull(), link.awayMs()]).to.deep.equal([true, 0])
      await admin.config('SET', 'maxmemory', '0')
      expect((await members.renew(epoch, fields, PROBE)).outcome).to.equal('renewed')
      await until(() => !link.isFull(), { what: 'Redis not to be full any more' })
    } finally {
      await admin.config('SET', 'maxmemory', '0')
      await link.close()
    }
  })
})
