import type { TenantId } from '../tenant.ts'
import { MAX_PAGE_BYTES, readPlace, writePlace } from './permission-page.ts'
import type { PageRequest, PermissionBook, PermissionDecision, PermissionPage, PermissionSummary } from './port.ts'
import type { RedisLink, Script } from './redis-link.ts'

/** A day longer than a request may wait: what a process leaves behind that died before it could forget. */
const KEEP_SECS = 86_400

/**
 * Three keys in every script: the requests of a scope, decided ones too (id -> entry); the tenant's undecided ones in their order
 * (id by place: microseconds of Redis's clock, made to rise); and what is told of those (id -> when they lapse, and the summary
 * as text that no script reads: cjson would not give it back as it was).
 */
const DROP = `local function drop(id) redis.call('ZREM', KEYS[2], id) redis.call('HDEL', KEYS[3], id) end`

const NOW = `local t = redis.call('TIME') local now = t[1] * 1000000 + t[2]`

/** Beside opening, it clears away what lapsed and nobody came back for: some of the oldest each time, so that it cannot pile up. */
const OPEN: Script = {
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

const DECIDE: Script = {
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

const LOOK: Script = { name: 'aeDecision', keys: 1, lua: `return redis.call('HGET', KEYS[1], ARGV[1])` }

const FORGET: Script = {
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
const LIST: Script = {
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

type Entry = { runId: string; bell: string; decided?: PermissionDecision }

/** Pub/sub is only the bell: whoever waits also looks (design §4.9). */
const LOOK_EVERY_MS = 500

/**
 * Permission requests in Redis, where every gateway decides by the same compare-and-set. A process that opens requests names
 * its own bell channel; one that only replies needs none.
 */
export async function createRedisPermissionBook(link: RedisLink, bell = ''): Promise<PermissionBook> {
  const waiting = new Map<string, () => void>()
  if (bell) await link.listen(bell, (id) => waiting.get(id.toString())?.())

  return {
    async open({ tenant, scopeId, id, runId, details }) {
      const entry: Entry = { runId, bell }
      const summary: PermissionSummary = { id, session_id: scopeId, run_id: runId, ...details }
      const waitsMs = Date.parse(details.expires_at) - Date.parse(details.created_at)
      const keepSecs = KEEP_SECS + Math.ceil(waitsMs / 1000)
      const args = [id, JSON.stringify(entry), JSON.stringify(summary), waitsMs, keepSecs]
      await link.run(OPEN, keysOf(tenant, scopeId), args)
    },
    async decide({ tenant, scopeId, id }, decision) {
      const answer = await link.run(DECIDE, keysOf(tenant, scopeId), [id, JSON.stringify(decision)])
      const [isWon, state] = answer as [number, PermissionDecision['state'] | null]
      return { isWon: isWon === 1, state: state ?? undefined }
    },
    async decision({ tenant, scopeId, id }) {
      const { promise, resolve } = Promise.withResolvers<PermissionDecision>()
      const check = async () => {
        const found = await link.run(LOOK, [keyOf(tenant, scopeId)], [id])
        const decided = typeof found === 'string' ? (JSON.parse(found) as Entry).decided : WITHDRAWN
        if (decided) resolve(decided)
      }
      const look = () => {
        check().catch(() => {}) // Redis is away: it is looked at again.
      }
      const timer = setInterval(look, LOOK_EVERY_MS)
      waiting.set(id, look)
      look()
      return promise.finally(() => {
        clearInterval(timer)
        waiting.delete(id)
      })
    },
    list: (tenant, page, isLive) => listPending(link, tenant, { ...page, isLive }),
    async forget(tenant, scopeId, runId = '') {
      await link.run(FORGET, keysOf(tenant, scopeId), [runId])
    },
  }
}

const WITHDRAWN = { state: 'withdrawn' } as const

/** Most steps bring all that is wanted; more are needed only where dead workers have left many requests. */
const MIN_STEP = 50

type ListRequest = PageRequest & { isLive: ((runId: string) => boolean) | undefined }
type Step = [rows: [place: string, summary: string][], end: 'last' | 'more' | 'full', upTo: string | null]

async function listPending(
  link: RedisLink,
  tenant: TenantId,
  { limit, cursor, isLive = () => true }: ListRequest,
): Promise<PermissionPage> {
  const found: { place: string; summary: PermissionSummary }[] = []
  let from = cursor === undefined ? '-inf' : `(${readPlace(cursor)}`
  let isOver = false
  let hasMore = false
  while (!isOver) {
    const args = [from, Math.max(MIN_STEP, limit + 1), MAX_PAGE_BYTES]
    const [rows, end, upTo] = (await link.run(LIST, keysOf(tenant, ''), args)) as Step
    for (const [place, text] of rows) {
      const summary = JSON.parse(text) as PermissionSummary
      if (isLive(summary.run_id)) found.push({ place, summary })
    }
    from = `(${upTo}`
    hasMore = found.length > limit || (end === 'full' && found.length > 0)
    isOver = hasMore || end === 'last'
  }
  const page = found.slice(0, limit)
  const last = page.at(-1)
  return {
    permissions: page.map(({ summary }) => summary),
    next_cursor: last && hasMore ? writePlace(last.place) : null,
  }
}

/** Neither id holds a blank. */
const keyOf = (tenant: TenantId, scopeId: string): string => `ae:permissions:${tenant} ${scopeId}`

const keysOf = (tenant: TenantId, scopeId: string): string[] => [
  keyOf(tenant, scopeId),
  `ae:pending:${tenant}`,
  `ae:asks:${tenant}`,
]
