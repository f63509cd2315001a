import type { Script } from '../redis-link.ts'

/**
 * Three keys in every script: the requests of a scope, decided ones too (id -> entry); the tenant's undecided ones in their order
 * (id by place: microseconds of Redis's clock, made to rise); and what is told of those (id -> when they lapse, and the summary
 * as text that no script reads: cjson would not give it back as it was).
 */
const DROP = `local function drop(id) redis.call('ZREM', KEYS[2], id) redis.call('HDEL', KEYS[3], id) end`

const NOW = `local t = redis.call('TIME') local now = t[1] * 1000000 + t[2]`

/** Beside opening, it clears away what lapsed and nobody came back for: some of the oldest each time, so that it cannot pile up. */
export const OPEN: Script = {
  name: 'aeAsk',
  keys: 3,
  lua: `${DROP} ${NOW}
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
    for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, 9)) do
      local lapses = string.match(redis.call('HGET', KEYS[3], id) or '', '^%d+')
      if not lapses or tonumber(lapses) <= now then drop(id) end
    end
    local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
    local place = math.max(now, (tonumber(last[2]) or 0) + 1)
    redis.call('ZADD', KEYS[2], string.format('%.0f', place), ARGV[1])
    redis.call('HSET', KEYS[3], ARGV[1], string.format('%.0f ', now + ARGV[4] * 1000) .. ARGV[3])
    for i = 1, 3 do redis.call('EXPIRE', KEYS[i], ARGV[5]) end
    return 1`,
}

export const DECIDE: Script = {
  name: 'aeDecide',
  keys: 3,
  lua: `${DROP}
    local found = redis.call('HGET', KEYS[1], ARGV[1])
    if not found then return { 0, false } end
    local entry = cjson.decode(found)
    if entry.decided then return { 0, entry.decided.state } end
    entry.decided = cjson.decode(ARGV[2])
    redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(entry))
    drop(ARGV[1])
    redis.call('PUBLISH', entry.bell, ARGV[1])
    return { 1, entry.decided.state }`,
}

export const LOOK: Script = { name: 'aeDecision', keys: 1, lua: `return redis.call('HGET', KEYS[1], ARGV[1])` }

export const FORGET: Script = {
  name: 'aeForget',
  keys: 3,
  lua: `${DROP}
    local entries = redis.call('HGETALL', KEYS[1])
    for i = 1, #entries, 2 do
      if ARGV[1] == '' or cjson.decode(entries[i + 1]).runId == ARGV[1] then
        redis.call('HDEL', KEYS[1], entries[i])
        drop(entries[i])
      end
    end
    return 1`,
}

/** A step of a list: rows of place and summary, how it ended (`last`, `more`, `full`: too many bytes), and up to where it looked. */
export const LIST: Script = {
  name: 'aePending',
  keys: 3,
  lua: `${DROP} ${NOW}
    local ids = redis.call('ZRANGEBYSCORE', KEYS[2], ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
    local rows, bytes, upTo = {}, 0, false
    for i = 1, #ids, 2 do
      local lapses, summary = string.match(redis.call('HGET', KEYS[3], ids[i]) or '', '^(%d+) (.*)$')
      if not lapses or tonumber(lapses) <= now then
        drop(ids[i])
      else
        bytes = bytes + #summary
        if #rows > 0 and bytes > tonumber(ARGV[3]) then return { rows, 'full', upTo } end
        rows[#rows + 1] = { ids[i + 1], summary }
      end
      upTo = ids[i + 1]
    end
    return { rows, #ids == ARGV[2] * 2 and 'more' or 'last', upTo }`,
}
