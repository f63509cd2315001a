import { expect } from 'chai'
import { createRedisMovedRuns } from '../../../shared/cluster/members/redis-moved-runs.ts'
import { DEFAULT_TENANT, type TenantId } from '../../../shared/kernel/tenant.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import { useRedis } from '../../support/redis.ts'

describe('moved runs in Redis', () => {
  const redis = useRedis()

  it('the newest record of a run counts, for its tenant alone, and lasts a day', async () => {
    const link = await openRedisLink(redis.url)
    const moved = createRedisMovedRuns(link)
    expect(await moved.find(DEFAULT_TENANT, 'run_1')).to.equal(undefined)
    await moved.record(DEFAULT_TENANT, ['run_1', 'run_2'], 7)
    await moved.record(DEFAULT_TENANT, ['run_1'], 8)
    const found = await Promise.all(['run_1', 'run_2', 'run_3'].map((id) => moved.find(DEFAULT_TENANT, id)))
    expect(found).to.deep.equal([8, 7, undefined])
    expect(await moved.find('other' as TenantId, 'run_1')).to.equal(undefined)
    expect(await redis.connect().ttl(`ae:moved:${DEFAULT_TENANT} run_1`)).to.be.within(86_000, 86_400)
    await link.close()
  })
})
