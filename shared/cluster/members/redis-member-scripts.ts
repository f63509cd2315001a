import type { Script } from '../../platform/redis/link.ts'
import { MAX_LAPSED } from './members.ts'

/** The keys of the members. They share a hash tag, since each script takes all of them. */
export const KEYS = [
  '{members}', // Hash: epoch -> nonce of the process, a blank, and the member's fields.
  '{members}:epoch', // The last epoch that was given out.
  '{members}:boot', // A marker that changes when Redis may have lost keys: a member that finds it changed was not evicted.
  '{members}:leases', // Sorted set: epoch by the end of its lease.
  '{members}:loads', // Hash: epoch -> load. It changes all the time, so it is kept apart from the fields.
  '{members}:version', // Rises with each change of the members.
  '{members}:checked', // The marker, for half a second after it was compared with Redis's replication id.
]
/** The channel on which each change is announced: version, epoch, and the fields, which are empty for a member that is gone. */
export const CHANGES = 'members'

/** How many epochs and versions are skipped when a replica has become the primary, because it may not know the last ones. */
const SKIPPED = 4_096
/** Reading the replication id costs a fifth of a renewal. */
const CHECKED_MS = 500

const NOW = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)`

/**
 * Reads the boot marker, or sets a new one, when Redis has restarted empty or has another replication id than the marker: a replica has
 * become the primary, and may lack what was written last. Redis's clock in microseconds makes the marker unique. The counters start at
 * the clock's seconds and microseconds, so that they rise even when Redis has lost them.
 */
const READ_MARKER = `
  local info = redis.pcall('INFO', 'replication')
  local id = type(info) == 'string' and string.match(info, 'master_replid:(%x+)') or ''
  local marker = redis.call('GET', KEYS[3])
  if not marker or string.match(marker, '%x*$') ~= id then
    marker = t[1] .. '.' .. t[2] .. ' ' .. id
    redis.call('SET', KEYS[3], marker)
    for key, least in pairs({ [KEYS[2]] = t[1], [KEYS[6]] = t[1] * 1000000 + t[2] }) do
      local last = redis.call('GET', key) or 0
      redis.call('SET', key, string.format('%.0f', math.max(least, last + ${SKIPPED})))
    end
  end
  redis.call('SET', KEYS[7], marker, 'PX', ${CHECKED_MS})`

/** Announces a change on the channel of the first argument. */
const CHANGE = `
  local function change(epoch, fields)
    redis.call('PUBLISH', ARGV[1], string.format('%.0f %s %s', redis.call('INCR', KEYS[6]), epoch, fields))
  end
  local function remove(epoch)
    redis.call('HDEL', KEYS[5], epoch)
    if redis.call('HDEL', KEYS[1], epoch) + redis.call('ZREM', KEYS[4], epoch) > 0 then change(epoch, '') end
  end`

/**
 * The number of subscribers of the channel in an argument; the next argument may be a message to it. Without a channel
 * the caller has checked that.
 */
const heard = (at: number) => `
  local heard = 1
  if ARGV[${at + 1}] then heard = redis.call('PUBLISH', ARGV[${at}], ARGV[${at + 1}])
  elseif ARGV[${at}] then heard = redis.call('PUBSUB', 'NUMSUB', ARGV[${at}])[2] end`

/** The same in a Redis Cluster, where the channel is a key to the node that has its subscribers. Argument: optionally a message. */
export const HEARD: Script = {
  name: 'aeHeard',
  keys: 1,
  lua: `if ARGV[1] then return redis.call('SPUBLISH', KEYS[1], ARGV[1]) end
    return redis.call('PUBSUB', 'SHARDNUMSUB', KEYS[1])[2]`,
}

const script = (name: string, lua: string): Script => ({ name, keys: KEYS.length, lua })

/** Arguments: channel of changes, length of a lease, nonce, fields, load. */
export const JOIN = script(
  'aeJoin',
  `${NOW} ${READ_MARKER} ${CHANGE}
    local epoch = redis.call('INCR', KEYS[2])
    redis.call('HSET', KEYS[1], epoch, ARGV[3] .. ' ' .. ARGV[4])
    redis.call('ZADD', KEYS[4], now + ARGV[2], epoch)
    redis.call('HSET', KEYS[5], epoch, ARGV[5])
    change(epoch, ARGV[4])
    return { epoch, marker }`,
)

/**
 * Renews the lease of a member whose fields have not changed, and returns the version of the members. Returns nothing when `RENEW` is
 * needed: there is no subscriber, Redis may have lost keys, or the record belongs to another process. Arguments: length of a lease, epoch,
 * load, the marker that the process knows, nonce, and optionally its channel and a message to it.
 */
export const EXTEND = script(
  'aeExtend',
  `${NOW}
    local last = redis.call('MGET', KEYS[7], KEYS[6])
    if not last[1] then ${READ_MARKER} last[1] = marker end
    local found = last[1] == ARGV[4] and redis.call('HGET', KEYS[1], ARGV[2])
    if not found or string.sub(found, 1, #ARGV[5]) ~= ARGV[5] then return nil end
    ${heard(6)}
    if heard == 0 then return nil end
    redis.call('ZADD', KEYS[4], now + ARGV[1], ARGV[2])
    redis.call('HSET', KEYS[5], ARGV[2], ARGV[3])
    return last[2]`,
)

/**
 * Arguments: those of `JOIN`, epoch, the marker that the process knows, and optionally its channel and a message to it. A record with another
 * nonce belongs to another process, which got the same epoch from a replica that did not know this one.
 */
export const RENEW = script(
  'aeRenew',
  `${heard(8)}
    if heard == 0 then return { 'unheard', ARGV[7], 0 } end
    ${NOW}
    local record = ARGV[3] .. ' ' .. ARGV[4]
    local found = redis.call('HGET', KEYS[1], ARGV[6])
    ${READ_MARKER} ${CHANGE}
    local hasLostKeys = marker ~= ARGV[7]
    if found and string.sub(found, 1, #ARGV[3]) ~= ARGV[3] or not found and not hasLostKeys then
      return { 'evicted', ARGV[7], 0 }
    end
    if hasLostKeys then redis.call('SET', KEYS[2], math.max(ARGV[6], redis.call('GET', KEYS[2]))) end
    redis.call('ZADD', KEYS[4], now + ARGV[2], ARGV[6])
    redis.call('HSET', KEYS[5], ARGV[6], ARGV[5])
    if found ~= record then
      redis.call('HSET', KEYS[1], ARGV[6], record)
      change(ARGV[6], ARGV[4])
    end
    return { hasLostKeys and 'keys_lost' or 'renewed', marker, redis.call('GET', KEYS[6]) }`,
)

/** The members in one piece of the list, about. Larger pieces block a process that joins, whose code is not compiled yet. */
const PIECE = 64

/** Returns a piece of the list of members. Argument: the position at which it begins, from the piece before it, or 0. */
export const LIST = script(
  'aeMembers',
  `${NOW}
    local piece = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ${PIECE})
    local epochs = {}
    for i = 1, #piece[2], 2 do epochs[#epochs + 1] = piece[2][i] end
    local isEmpty = #epochs == 0
    return {
      now, redis.call('GET', KEYS[6]) or 0, piece[1], piece[2],
      isEmpty and {} or redis.call('ZMSCORE', KEYS[4], unpack(epochs)),
      isEmpty and {} or redis.call('HMGET', KEYS[5], unpack(epochs)) }`,
)

/** Arguments: the members whose loads are read. */
export const LOOK = script(
  'aeLook',
  `${NOW} return {
    redis.call('GET', KEYS[6]) or 0,
    redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now, 'LIMIT', 0, ${MAX_LAPSED}),
    #ARGV > 0 and redis.call('HMGET', KEYS[5], unpack(ARGV)) or {} }`,
)

/** Arguments: channel of changes, epoch. */
export const EXPIRE = script(
  'aeExpire',
  `${NOW} ${CHANGE}
    local ends = redis.call('ZSCORE', KEYS[4], ARGV[2])
    if ends and tonumber(ends) > now then return 0 end
    remove(ARGV[2])
    return 1`,
)

/** Arguments: channel of changes, epoch. */
export const LEAVE = script('aeLeave', `${CHANGE} remove(ARGV[2]) return 1`)

/** Arguments: epoch. */
export const IS_MEMBER = script('aeIsMember', `return redis.call('HEXISTS', KEYS[1], ARGV[1])`)

export const READ_BOOT = script('aeBoot', `${NOW} ${READ_MARKER} return marker`)
