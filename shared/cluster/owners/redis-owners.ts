import type { TenantId } from '../../kernel/tenant.ts'
import type { RedisLink, Script } from '../../platform/redis/link.ts'
import type { Claim, MovedRuns, Owners, SessionKey } from './owners.ts'

const CLAIM: Script = {
  name: 'aeClaim',
  keys: 1,
  lua: `if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2]) then return ARGV[1] end
    local holder = redis.call('GET', KEYS[1])
    if holder == ARGV[1] then redis.call('EXPIRE', KEYS[1], ARGV[2]) end
    return holder`,
}

const FIND: Script = { name: 'aeOwner', keys: 1, lua: `return redis.call('GET', KEYS[1])` }

const REPLACE: Script = {
  name: 'aeReplaceClaim',
  keys: 1,
  lua: `local holder = redis.call('GET', KEYS[1])
    if holder == ARGV[2] then return 1 end
    if holder ~= ARGV[1] then return 0 end
    redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
    return 1`,
}

const TAKE_OVER: Script = {
  name: 'aeTakeOver',
  keys: 1,
  lua: `local holder = redis.call('GET', KEYS[1])
    if holder == ARGV[2] then return 1 end
    if holder and string.sub(holder, 1, #ARGV[1]) ~= ARGV[1] then return 0 end
    redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
    return 1`,
}

const RELEASE: Script = {
  name: 'aeRelease',
  keys: 1,
  lua: `local holder = redis.call('GET', KEYS[1])
    if holder and holder ~= ARGV[1] then return 0 end
    redis.call('DEL', KEYS[1])
    return 1`,
}

/** The owners of sessions as one Redis key per session, which holds the claim. */
export function createRedisOwners(link: Pick<RedisLink, 'run'>): Owners {
  return {
    claim: async (session, claim, secs) =>
      parse(String(await link.run(CLAIM, [keyOf(session)], [format(claim), secs]))),
    async find(session) {
      const found = await link.run(FIND, [keyOf(session)], [])
      return typeof found === 'string' ? parse(found) : undefined
    },
    replace: async (session, { from, to }, secs) =>
      (await link.run(REPLACE, [keyOf(session)], [format(from), format(to), secs])) === 1,
    takeOver: async (session, { from, to }, secs) =>
      (await link.run(TAKE_OVER, [keyOf(session)], [`${from} `, format(to), secs])) === 1,
    release: async (session, claim) => (await link.run(RELEASE, [keyOf(session)], [format(claim)])) === 1,
  }
}

/** Neither id contains a space, so the key is unambiguous. */
const keyOf = ({ tenant, id }: SessionKey): string => `session:${tenant} ${id}`

const format = ({ epoch, token }: Claim): string => `${epoch} ${token}`

function parse(text: string): Claim {
  const [epoch, token = ''] = text.split(' ')
  return { epoch: Number(epoch), token }
}

const KEEP_SECS = 86_400

const RECORD_RUN: Script = {
  name: 'aeMovedRun',
  keys: 'any',
  lua: `for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1], 'EX', ARGV[2]) end return 1`,
}

const FIND_RUN: Script = { name: 'aeFindMovedRun', keys: 1, lua: `return redis.call('GET', KEYS[1])` }

/** One Redis key per run that has moved. */
export const createRedisMovedRuns = (link: Pick<RedisLink, 'run' | 'isCluster'>): MovedRuns => ({
  /** With one command, unless the keys may be on several nodes. */
  async record(tenant, runIds, epoch) {
    if (runIds.length === 0) return
    const keys = runIds.map((runId) => runKeyOf(tenant, runId))
    const commands = link.isCluster ? keys.map((key) => [key]) : [keys]
    await Promise.all(commands.map((some) => link.run(RECORD_RUN, some, [epoch, KEEP_SECS])))
  },
  async find(tenant, runId) {
    const found = await link.run(FIND_RUN, [runKeyOf(tenant, runId)], [])
    return typeof found === 'string' ? Number(found) : undefined
  },
})

/** Neither id contains a space, so the key is unambiguous. */
const runKeyOf = (tenant: TenantId, runId: string): string => `moved:${tenant} ${runId}`
