import type { TenantId } from '../../tenant.ts'
import type { RedisLink, Script } from '../redis-link.ts'
import type { Owners } from './owners.ts'

/** A dead worker's claims expire after a day; live workers repeat theirs every hour. */
const KEEP_SECS = 86_400

const CLAIM: Script = {
  name: 'aeClaim',
  keys: 1,
  lua: `redis.call('SET', KEYS[1], ARGV[1], 'NX')
    local owner = redis.call('GET', KEYS[1])
    if owner == ARGV[1] then redis.call('EXPIRE', KEYS[1], ARGV[2]) end
    return owner`,
}

const FIND: Script = { name: 'aeOwner', keys: 1, lua: `return redis.call('GET', KEYS[1])` }

const TRANSFER: Script = {
  name: 'aeTransfer',
  keys: 1,
  lua: `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
    redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
    return 1`,
}

const RELEASE: Script = {
  name: 'aeRelease',
  keys: 1,
  lua: `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 1`,
}

/** The owners of sessions as one Redis key per session. */
export function createRedisOwners(link: Pick<RedisLink, 'run'>): Owners {
  return {
    claim: async (tenant, sessionId, epoch) =>
      Number(await link.run(CLAIM, [keyOf(tenant, sessionId)], [epoch, KEEP_SECS])),
    async find(tenant, sessionId) {
      const epoch = await link.run(FIND, [keyOf(tenant, sessionId)], [])
      return epoch === null ? undefined : Number(epoch)
    },
    transfer: async (tenant, sessionId, { from, to }) =>
      (await link.run(TRANSFER, [keyOf(tenant, sessionId)], [from, to, KEEP_SECS])) === 1,
    async release(tenant, sessionId, epoch) {
      await link.run(RELEASE, [keyOf(tenant, sessionId)], [epoch])
    },
  }
}

/** Neither id contains a space, so the key is unambiguous. */
const keyOf = (tenant: TenantId, sessionId: string): string => `ae:session:${tenant} ${sessionId}`
