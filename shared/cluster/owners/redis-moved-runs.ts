import type { TenantId } from '../../kernel/tenant.ts'
import type { RedisLink, Script } from '../../platform/redis/link.ts'
import type { MovedRuns } from './moved-runs.ts'

const KEEP_SECS = 86_400

const RECORD: Script = {
  name: 'aeMovedRun',
  keys: 'any',
  lua: `for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1], 'EX', ARGV[2]) end return 1`,
}

const FIND: Script = { name: 'aeFindMovedRun', keys: 1, lua: `return redis.call('GET', KEYS[1])` }

/** One Redis key per run that has moved. */
export const createRedisMovedRuns = (link: Pick<RedisLink, 'run' | 'isCluster'>): MovedRuns => ({
  /** With one command, unless the keys may be on several nodes. */
  async record(tenant, runIds, epoch) {
    if (runIds.length === 0) return
    const keys = runIds.map((runId) => keyOf(tenant, runId))
    const commands = link.isCluster ? keys.map((key) => [key]) : [keys]
    await Promise.all(commands.map((some) => link.run(RECORD, some, [epoch, KEEP_SECS])))
  },
  async find(tenant, runId) {
    const found = await link.run(FIND, [keyOf(tenant, runId)], [])
    return typeof found === 'string' ? Number(found) : undefined
  },
})

/** Neither id contains a space, so the key is unambiguous. */
const keyOf = (tenant: TenantId, runId: string): string => `moved:${tenant} ${runId}`
