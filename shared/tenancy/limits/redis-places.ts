import type { TenantId } from '../../kernel/tenant.ts'
import type { RedisLink, Script } from '../../platform/redis/link.ts'
import { PLACE_MS, type RunPlaces } from './port.ts'

/** A sorted set per tenant: the runs, by the time at which their places are free again, by Redis's clock. */
const CLEAN = `local t = redis.call('TIME')
  local now = t[1] * 1000 + math.floor(t[2] / 1000)
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)`

const TAKE: Script = {
  name: 'aeTakePlace',
  keys: 1,
  lua: `${CLEAN}
  local isNew = not redis.call('ZSCORE', KEYS[1], ARGV[1])
  if isNew and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
  redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return 1`,
}

const RENEW: Script = {
  name: 'aeRenewPlaces',
  keys: 1,
  lua: `${CLEAN}
  for i = 2, #ARGV do redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[i]) end
  redis.call('PEXPIRE', KEYS[1], ARGV[1])`,
}

const RELEASE: Script = {
  name: 'aeReleasePlace',
  keys: 1,
  lua: `return redis.call('ZREM', KEYS[1], ARGV[1])`,
}

const COUNT: Script = { name: 'aeCountPlaces', keys: 1, lua: `${CLEAN} return redis.call('ZCARD', KEYS[1])` }

/** The places of a cluster, counted over all its processes. */
export function createRedisRunPlaces(run: RedisLink['run']): RunPlaces {
  const keyOf = (tenant: TenantId) => [`places:${tenant}`]
  return {
    take: async (tenant, runId, limit) => (await run(TAKE, keyOf(tenant), [runId, limit, PLACE_MS])) === 1,
    async renew(tenant, runIds) {
      if (runIds.length > 0) await run(RENEW, keyOf(tenant), [PLACE_MS, ...runIds])
    },
    async release(tenant, runId) {
      await run(RELEASE, keyOf(tenant), [runId])
    },
    count: async (tenant) => Number(await run(COUNT, keyOf(tenant), [])),
  }
}
