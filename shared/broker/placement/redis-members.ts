import { randomUUID } from 'node:crypto'
import { isJsonObject, parseJson } from '../../json.ts'
import type { RedisLink, Script } from '../redis-link.ts'
import { type Member, type MemberFields, type Members, PROTOCOL, type Renewal, ROLES, STATES } from './members.ts'

/** Hash: epoch -> when its lease ends, and the member's fields. */
const MEMBERS = '{members}'
/** The last epoch that was given out. */
const EPOCH = '{members}:epoch'
/** A marker that changes when Redis may have lost keys: a member that finds it changed was not evicted. */
const BOOT = '{members}:boot'
const KEYS = [MEMBERS, EPOCH, BOOT]

/** A lease ends this long after its last renewal. The member itself stops acting earlier, see `Lease`. */
const LEASE_MS = 4_000
/** A replica that has become the primary may not know the last epochs: so many are left out. */
const SKIPPED_EPOCHS = 4_096

const NOW = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)`

/**
 * Reads the boot marker, or sets a new one, when Redis has restarted empty or has another replication id than the marker: a replica has
 * become the primary, and may lack what was written last. Redis's clock in microseconds makes the marker unique. The counter of epochs
 * starts at the clock's seconds, so that epochs rise even when Redis has lost it.
 */
const READ_MARKER = `${NOW}
  local info = redis.pcall('INFO', 'replication')
  local id = type(info) == 'string' and string.match(info, 'master_replid:(%x+)') or ''
  local marker = redis.call('GET', KEYS[3])
  if not marker or string.match(marker, '%x*$') ~= id then
    marker = t[1] .. '.' .. t[2] .. ' ' .. id
    redis.call('SET', KEYS[3], marker)
    redis.call('SET', KEYS[2], math.max(t[1], (redis.call('GET', KEYS[2]) or 0) + ${SKIPPED_EPOCHS}))
  end`

const JOIN: Script = {
  name: 'aeJoin',
  keys: 3,
  lua: `${READ_MARKER}
    local epoch = redis.call('INCR', KEYS[2])
    redis.call('HSET', KEYS[1], epoch, cjson.encode({ until_ms = now + ARGV[1], fields = ARGV[2], nonce = ARGV[3] }))
    return { epoch, marker }`,
}

/** A record with another nonce belongs to another process, which got the same epoch from a replica that did not know this one. */
const RENEW: Script = {
  name: 'aeRenew',
  keys: 3,
  lua: `if redis.call('PUBLISH', ARGV[6], ARGV[7]) == 0 then return { 'unheard', ARGV[5] } end
    ${READ_MARKER}
    local found = redis.call('HGET', KEYS[1], ARGV[1])
    local hasLostKeys = marker ~= ARGV[5]
    if found and cjson.decode(found).nonce ~= ARGV[4] or not found and not hasLostKeys then
      return { 'evicted', ARGV[5] }
    end
    if hasLostKeys then redis.call('SET', KEYS[2], math.max(ARGV[1], redis.call('GET', KEYS[2]))) end
    redis.call('HSET', KEYS[1], ARGV[1], cjson.encode({ until_ms = now + ARGV[2], fields = ARGV[3], nonce = ARGV[4] }))
    return { hasLostKeys and 'keys_lost' or 'renewed', marker }`,
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

const READ_BOOT: Script = { name: 'aeBoot', keys: 3, lua: `${READ_MARKER} return marker` }

const LEAVE: Script = { name: 'aeLeave', keys: 1, lua: `return redis.call('HDEL', KEYS[1], ARGV[1])` }

/** The members of the cluster in one Redis hash. One object per process: it remembers the boot marker and its nonce. */
export function createRedisMembers(link: Pick<RedisLink, 'run' | 'prefix'>): Members {
  const nonce = randomUUID()
  let boot = ''
  return {
    async join(fields) {
      const answer = await link.run(JOIN, KEYS, [LEASE_MS, packFields(fields), nonce])
      const [epoch, marker] = answer as [number, string]
      boot = marker
      return epoch
    },
    async renew(epoch, fields, { channel, message }) {
      const args = [epoch, LEASE_MS, packFields(fields), nonce, boot, link.prefix + channel, message]
      const [outcome, marker] = (await link.run(RENEW, KEYS, args)) as [Renewal, string]
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
    isBootMarkerCurrent: async () => (await link.run(READ_BOOT, KEYS, [])) === boot,
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
