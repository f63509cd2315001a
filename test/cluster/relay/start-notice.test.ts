import { expect } from 'chai'
import { announceStart, listenForStarts } from '../../../shared/cluster/relay/start-notice.ts'
import { newTraceId, runIdOf } from '../../../shared/kernel/ids.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import { useRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

describe('the notice of a started run', () => {
  const redis = useRedis()

  it('reaches every listener with the run and the epoch, until it stops; what is no announcement is ignored', async () => {
    const [executor, gateway] = [await openRedisLink(redis.url), await openRedisLink(redis.url)]
    const heard: [string, number][] = []
    const stop = await listenForStarts(gateway, (...started) => heard.push(started))
    const [first, second] = [runIdOf(newTraceId()), runIdOf(newTraceId())]
    const client = redis.connect()
    for (const text of ['', 'run_1 2', `${first} x`, `${first} 1 2`, `x ${first} 1`])
      await client.publish('ae:started', text)
    announceStart(executor, first, 1_795_000_000)
    await until(() => heard.length > 0, { what: 'the notice' })
    await stop()
    announceStart(executor, second, 3)
    await until(async () => (await client.pubsub('NUMSUB', 'ae:started'))[1] === 0, { what: 'nobody to listen' })
    expect(heard).to.deep.equal([[first, 1_795_000_000]])
    await Promise.all([executor.close(), gateway.close()])
  })

  it('does nothing while Redis is away', async () => {
    const link = await openRedisLink(redis.url)
    await redis.server.kill('SIGKILL')
    announceStart(link, runIdOf(newTraceId()), 1)
    await until(() => link.awayMs() > 0, { what: 'the failure to be noticed' })
    await link.close()
  })
})
