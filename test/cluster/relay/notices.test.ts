import { expect } from 'chai'
import { announceMoves, announceStart, listenForMoves, listenForStarts } from '../../../shared/cluster/relay/notices.ts'
import { newTraceId, runIdOf } from '../../../shared/kernel/ids.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import { useRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

describe('the notices of runs to all gateways', () => {
  const redis = useRedis()

  it('of one that has begun reaches every listener with the run and the epoch; what is no announcement is ignored', async () => {
    const [executor, gateway] = [await openRedisLink(redis.url), await openRedisLink(redis.url)]
    const heard: [string, number][] = []
    await listenForStarts(gateway, (...started) => heard.push(started))
    const runId = runIdOf(newTraceId())
    const client = redis.connect()
    for (const text of ['', 'run_1 2', `${runId} x`, `${runId} 1 2`, `x ${runId} 1`])
      await client.publish('ae:started', text)
    announceStart(executor, runId, 1_795_000_000)
    await until(() => heard.length > 0, { what: 'the notice' })
    expect(heard).to.deep.equal([[runId, 1_795_000_000]])
    await Promise.all([executor.close(), gateway.close()])
  })

  it('of those that go on at another worker reaches a gateway with all runs; that of none is not sent, and what is no notice is ignored', async () => {
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

  it('do nothing while Redis is away', async () => {
    const link = await openRedisLink(redis.url)
    await redis.server.kill('SIGKILL')
    announceStart(link, runIdOf(newTraceId()), 1)
    announceMoves(link, ['run_a'], 7)
    await until(() => link.awayMs() > 0, { what: 'the failure to be noticed' })
    await link.close()
  })
})
