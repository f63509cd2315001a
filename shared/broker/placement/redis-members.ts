import { isJsonObject, parseJson } from '../../json.ts'
import type { RedisLink, Script } from '../redis-link.ts'
import { type Member, type MemberFields, type Members, PROTOCOL, type Renewal, ROLES, STATES } from './members.ts'

/** Hash: epoch -> when its lease ends, and the member's fields. */
const MEMBERS = '{members}'
/** The last epoch that was given out. */
const EPOCH = '{members}:epoch'
/** A marker that changes when Redis restarts empty: a member that finds it changed was not evicted, Redis has lost it. */
const BOOT = '{members}:boot'

/** A lease ends this long after its last renewal. The member itself stops acting earlier, see `Lease`. */
const LEASE_MS = 4_000

const NOW = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)`

/** Sets the boot marker if there is none. Redis's clock in microseconds makes it unique. */
const SET_BOOT = `redis.call('SET', KEYS[3], t[1] .. '.' .. t[2], 'NX')`

const JOIN: Script = {
  name: 'aeJoin',
  keys: 3,
  // The counter starts at the clock's seconds, so that epochs rise even when Redis has restarted empty.
  lua: `${NOW}
    redis.call('SET', KEYS[2], t[1], 'NX')
    local epoch = redis.call('INCR', KEYS[2])
    ${SET_BOOT}
    redis.call('HSET', KEYS[1], epoch, cjson.encode({ until_ms = now + ARGV[1], fields = ARGV[2] }))
    return { epoch, redis.call('GET', KEYS[3]) }`,
}

const RENEW: Script = {
  name: 'aeRenew',
  keys: 3,
  lua: `if redis.call('PUBLISH', ARGV[5], ARGV[6]) == 0 then return { 'unheard', ARGV[4] } end
    ${NOW}
    local isEmptied = redis.call('GET', KEYS[3]) ~= ARGV[4]
    if isEmptied then
      redis.call('SET', KEYS[2], math.max(ARGV[1], redis.call('GET', KEYS[2]) or t[1]))
      ${SET_BOOT}
    elseif redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
      return { 'evicted', ARGV[4] }
    end
    redis.call('HSET', KEYS[1], ARGV[1], cjson.encode({ until_ms = now + ARGV[2], fields = ARGV[3] }))
    return { isEmptied and 'redis_emptied' or 'renewed', redis.call('GET', KEYS[3]) }`,
}

const LIST: Script = {
  name: 'aeMembers',
  keys: 1,
  lua: `${NOW} return { now, redis.call('HGETALL', KEYS[1]) }`,
}

const EXPIRE: Script = {
  name: 'aeExpire',
  keys: 1,
  lua: `${NOW}
    local found = redis.call('HGET', KEYS[1], ARGV[1])
    if not found then return 1 end
    if cjson.decode(found).until_ms > now then return 0 end
    redis.call('HDEL', KEYS[1], ARGV[1])
    return 1`,
}

const IS_MEMBER: Script = { name: 'aeIsMember', keys: 1, lua: `return redis.call('HEXISTS', KEYS[1], ARGV[1])` }

const READ_BOOT: Script = { name: 'aeBoot', keys: 1, lua: `return redis.call('GET', KEYS[1])` }

const LEAVE: Script = { name: 'aeLeave', keys: 1, lua: `return redis.call('HDEL', KEYS[1], ARGV[1])` }

/** The members of the cluster in one Redis hash. One object per process: it remembers the boot marker. */
export function createRedisMembers(link: Pick<RedisLink, 'run' | 'prefix'>): Members {
  let boot = ''
  return {
    async join(fields) {
      const answer = await link.run(JOIN, [MEMBERS, EPOCH, BOOT], [LEASE_MS, packFields(fields)])
      const [epoch, marker] = answer as [number, string]
      boot = marker
      return epoch
    },
    async renew(epoch, fields, { channel, message }) {
      const args = [epoch, LEASE_MS, packFields(fields), boot, link.prefix + channel, message]
      const [outcome, marker] = (await link.run(RENEW, [MEMBERS, EPOCH, BOOT], args)) as [Renewal, string]
      boot = marker
      return outcome
    },
    async leave(epoch) {
      await link.run(LEAVE, [MEMBERS], [epoch])
    },
    async list() {
      const [now, entries] = (await link.run(LIST, [MEMBERS], [])) as [number, string[]]
      return readMembers(now, entries)
    },
    isMember: async (epoch) => (await link.run(IS_MEMBER, [MEMBERS], [epoch])) === 1,
    isBootMarkerCurrent: async () => (await link.run(READ_BOOT, [BOOT], [])) === boot,
    expire: async (epoch) => (await link.run(EXPIRE, [MEMBERS], [epoch])) === 1,
  }
}

const packFields = (fields: MemberFields): string => JSON.stringify({ protocol: PROTOCOL, ...fields })

/** `entries` is a hash as Redis returns it: field, value, field, value. Another release may have written them. */
function readMembers(now: number, entries: readonly string[]): Member[] {
  const members: Member[] = []
  for (let i = 0; i + 1 < entries.length; i += 2) {
    const entry = parseJson(entries[i + 1] ?? '')
    if (!isJsonObject(entry)) continue
    const fields = readFields(parseJson(String(entry['fields'])))
    if (fields) members.push({ ...fields, epoch: Number(entries[i]), expiresInMs: Number(entry['until_ms']) - now })
  }
  return members
}

/** `undefined` for a role or state that this release does not know, and for a process that speaks no version that it speaks. */
function readFields(fields: unknown): MemberFields | undefined {
  if (!isJsonObject(fields)) return undefined
  const { role, state, load, pid, protocol } = fields
  const knownRole = ROLES.find((known) => known === role)
  const knownState = STATES.find((known) => known === state)
  if (!knownRole || !knownState || !isCompatible(protocol)) return undefined
  return { role: knownRole, state: knownState, load: Number(load), pid: Number(pid) }
}

const isCompatible = (protocol: unknown): boolean =>
  isJsonObject(protocol) && Number(protocol['min']) <= PROTOCOL.max && Number(protocol['max']) >= PROTOCOL.min
