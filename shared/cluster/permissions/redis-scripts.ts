import type { Script } from '../../platform/redis/link.ts'

/**
 * All scripts but READ, FIND and PENDING take three keys:
 * 1. `permissions:{<tenant>} <scope>`, hash: the requests of a session or one-shot run, decided ones too (id -> entry);
 * 2. `pending:{<tenant>}`, sorted set: the ids of undecided requests by place (microseconds of Redis's clock, always rising);
 * 3. `asks:{<tenant>}`, hash: for each undecided request when it expires, and its summary. The summary is text that no script
 *    decodes, since cjson would not encode it again unchanged.
 */
const DROP = `local function drop(id) redis.call('ZREM', KEYS[2], id) redis.call('HDEL', KEYS[3], id) end`

const NOW = `local t = redis.call('TIME') local now = t[1] * 1000000 + t[2]`

/**
 * Opens a request only once, because the command may arrive twice. It also removes up to ten of the tenant's oldest expired requests, which a dead
 * worker may have left.
 */
export const OPEN: Script = {
  name: 'aeOpenRequest',
  keys: 3,
  lua: `${DROP} ${NOW}
    if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
    for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, 9)) do
      local expires = string.match(redis.call('HGET', KEYS[3], id) or '', '^%d+')
      if not expires or tonumber(expires) <= now then drop(id) end
    end
    local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
    local place = math.max(now, (tonumber(last[2]) or 0) + 1)
    redis.call('ZADD', KEYS[2], string.format('%.0f', place), ARGV[1])
    redis.call('HSET', KEYS[3], ARGV[1], string.format('%.0f ', now + ARGV[4] * 1000) .. ARGV[3])
    for i = 1, 3 do redis.call('EXPIRE', KEYS[i], ARGV[5]) end
    return 1`,
}

/**
 * Decides a request if it is undecided. Returns whether this call decided, and the request's state. The third argument is the call's
 * own token: if the command arrives twice, the second one recognizes its own decision. With '1' as the fourth argument the decision is a
 * reply. A reply to a request that is past its deadline, or was removed from the third key because of that, lets the request expire.
 */
export const DECIDE: Script = {
  name: 'aeDecide',
  keys: 3,
  lua: `${DROP} ${NOW}
    local found = redis.call('HGET', KEYS[1], ARGV[1])
    if not found then return { 0, false } end
    local entry = cjson.decode(found)
    if entry.decided then return { entry.decidedBy == ARGV[3] and 1 or 0, entry.decided.state } end
    local expires = string.match(redis.call('HGET', KEYS[3], ARGV[1]) or '', '^%d+')
    local isLate = ARGV[4] == '1' and (not expires or tonumber(expires) <= now)
    entry.decided = isLate and { state = 'expired' } or cjson.decode(ARGV[2])
    if not isLate then entry.decidedBy = ARGV[3] end
    redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(entry))
    drop(ARGV[1])
    redis.call('PUBLISH', entry.bell, ARGV[1])
    return { isLate and 0 or 1, entry.decided.state }`,
}

/** Reads one request's entry, with only the first key. */
export const READ: Script = { name: 'aeDecision', keys: 1, lua: `return redis.call('HGET', KEYS[1], ARGV[1])` }

/** Reads the summary of a request that is undecided and not expired, with only the third key. */
export const FIND: Script = {
  name: 'aeFindRequest',
  keys: 1,
  lua: `${NOW}
    local expires, summary = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^(%d+) (.*)$')
    return expires and tonumber(expires) > now and summary or false`,
}

/** Returns those of the given ids that are undecided, with only the third key. */
export const PENDING: Script = {
  name: 'aeUndecided',
  keys: 1,
  lua: `
    local pending = {}
    for _, id in ipairs(ARGV) do
      if redis.call('HEXISTS', KEYS[1], id) == 1 then pending[#pending + 1] = id end
    end
    return pending`,
}

/** Deletes the requests of the scope, or those of one of its runs. A worker that waits for one of them reads that it is gone. */
export const FORGET: Script = {
  name: 'aeForget',
  keys: 3,
  lua: `${DROP}
    local entries = redis.call('HGETALL', KEYS[1])
    for i = 1, #entries, 2 do
      local entry = cjson.decode(entries[i + 1])
      if ARGV[1] == '' or entry.runId == ARGV[1] then
        redis.call('HDEL', KEYS[1], entries[i])
        drop(entries[i])
        if not entry.decided then redis.call('PUBLISH', entry.bell, entries[i]) end
      end
    end
    return 1`,
}

/**
 * Reads a part of the tenant's list; with '1' as the fourth argument of calls that clients execute, else of permissions: rows of place and summary,
 * how the part ended (`last`: the list's end; `more`: its limit; `full`: the limit of bytes), the place of the last id it has read, and how many ids
 * of the kind the list has.
 */
export const LIST: Script = {
  name: 'aePending',
  keys: 3,
  lua: `${DROP} ${NOW}
    local function isOfKind(id) return (string.sub(id, 1, 5) == 'call_') == (ARGV[4] == '1') end
    local function count()
      local sum = 0
      for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do if isOfKind(id) then sum = sum + 1 end end
      return sum
    end
    local ids = redis.call('ZRANGEBYSCORE', KEYS[2], ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
    local rows, bytes, upTo = {}, 0, false
    for i = 1, #ids, 2 do
      local expires, summary = string.match(redis.call('HGET', KEYS[3], ids[i]) or '', '^(%d+) (.*)$')
      if not expires or tonumber(expires) <= now then
        drop(ids[i])
      elseif isOfKind(ids[i]) then
        bytes = bytes + #summary
        if #rows > 0 and bytes > tonumber(ARGV[3]) then return { rows, 'full', upTo, count() } end
        rows[#rows + 1] = { ids[i + 1], summary }
      end
      upTo = ids[i + 1]
    end
    return { rows, #ids == ARGV[2] * 2 and 'more' or 'last', upTo, count() }`,
}
