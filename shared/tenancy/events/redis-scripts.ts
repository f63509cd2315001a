import type { TenantId } from '../../kernel/tenant.ts'
import type { Script } from '../../platform/redis/link.ts'

/** Names a tenant's stream and its channel. */
export const keyOf = (tenant: TenantId): string => `events:${tenant}`

/**
 * Appends events to a tenant's log and sends them to the gateways that have readers of it. The ids of the stream's entries are positions.
 * ARGV: the channel, how many entries are kept, how long an unused log is kept (ms), whether events were lost before these, the events.
 */
export const APPEND: Script = {
  name: 'aeEventsAppend',
  keys: 1,
  lua: `local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
    local generation, n = 0, 0
    if newest then
      local a, b = string.match(newest[1], '^(%d+)-(%d+)$')
      generation, n = tonumber(a), tonumber(b)
    end
    if not newest or ARGV[4] == '1' then
      local t = redis.call('TIME')
      generation, n = math.max(t[1] * 1000 + math.floor(t[2] / 1000), generation + 1), 0
    end
    local first = string.format('%.0f-%.0f', generation, n + 1)
    for i = 5, #ARGV do
      n = n + 1
      redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], string.format('%.0f-%.0f', generation, n), 'e', ARGV[i])
    end
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
    redis.call('PUBLISH', ARGV[1], first .. '\\n' .. table.concat(ARGV, '\\n', 5))`,
}

/** Returns the ids of the oldest and the newest entry, and a page of entries from an id on. ARGV: that id, the length of the page. */
export const READ: Script = {
  name: 'aeEventsRead',
  keys: 1,
  lua: `local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
    if not oldest then return {} end
    local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
    return { oldest[1], newest[1], redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', ARGV[2]) }`,
}
