import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import { createRedisRunPlaces } from '../../../shared/tenancy/limits/redis-places.ts'
import { placesContract } from '../../contract/run-places.ts'
import { useOpened } from '../../support/fixture.ts'
import { useRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

describe('the places of concurrent runs in Redis', () => {
  const redis = useRedis()
  const link = useOpened(() => openRedisLink(redis.url))

  placesContract(() => createRedisRunPlaces(link))

  it('the starts of a process that looks at the line no more have left it', async () => {
    const soon = createRedisRunPlaces(link, 1)
    const news = { left: [], customers: [] }
    const start = { runId: 'run_of_dead', priority: 'normal', waitedMs: 0 } as const
    await soon.look(TENANT, { ...news, process: 'dead', joined: [start] })
    const starts = async () => (await soon.look(TENANT, { ...news, process: 'alive', joined: [] })).starts
    await until(async () => (await starts()).length === 0, { what: 'the line to be empty' })
  })
})
