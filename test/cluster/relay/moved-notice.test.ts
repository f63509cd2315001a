import { expect } from 'chai'
import { announceMoves, listenForMoves } from '../../../shared/cluster/relay/moved-notice.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import { useRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

describe('the notice of runs that go on at another worker', () => {
  const redis = useRedis()

  it('reaches a gateway with all runs; that of none is not sent, and what is no notice is ignored', async () => {
    const [worker, gateway] = [await openRedisLink(redis.url), await openRedisLink(redis.url)]
    const heard: unknown[] = []
    await listenForMoves(gateway, (...moved) => heard.push(moved))
    announceMoves(worker, [], 7)
    for (const text of ['', '7', '7 x', 'run_a 7']) await worker.publish('moved', Buffer.from(text))
    announceMoves(worker, ['run_a', 'run_b'], 7)
    await until(() => heard.length > 0, { what: 'the notice' })
    expect(heard).to.deep.equal([[['run_a', 'run_b'], 7]])
    await Promise.all([worker.close(), gateway.close()])
  })

  it('does nothing while Redis is away', async () => {
    const link = await openRedisLink(redis.url)
    await redis.server.kill('SIGKILL')
    announceMoves(link, ['run_a'], 7)
    await until(() => link.awayMs() > 0, { what: 'the failure to be noticed' })
    await link.close()
  })
})
