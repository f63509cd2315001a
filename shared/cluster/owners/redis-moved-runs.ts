import type { TenantId } from '../../kernel/tenant.ts'
import type { RedisLink, Script } from '../../platform/redis/link.ts'
import type { MovedRuns } from './moved-runs.ts'

const KEEP_SECS = 86_400

const RECORD: Script = {
  name: 'aeMovedRun',
  keys: 1,
  lua: `redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2]) return 1`,
}

const FIND: Script = { name: 'aeFindMovedRun', keys: 1, lua: `return redis.call('GET', KEYS[1])` }

/** One Redis key per run that has moved. */
export const createRedisMovedRuns = (link: Pick<RedisLink, 'run'>): MovedRuns => ({
  async record(tenant, runIds, epoch) {
    await Promise.all(runIds.map((runId) => link.run(RECORD, [keyOf(tenant, runId)], [epoch, KEEP_SECS])))
  },
  async find(tenant, runId) {
    const found = await link.run(FIND, [keyOf(tenant, runId)], [])
    return typeof found === 'string' ? Number(found) : undefined
  },
})

/** Neither id contains a space, so the key is unambiguous. */
const keyOf = (tenant: TenantId, runId: string): string => `moved:${tenant} ${runId}`
