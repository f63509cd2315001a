import type { Queue, Worker } from 'bullmq'
import type { TenantId } from '../../kernel/tenant.ts'
import type { BullData } from './bullmq-redis.ts'
import type { Job, JobCounts } from './port.ts'

/** A queue of BullMQ, or a worker of one. */
type BullKeys = Queue<BullData> | Worker<BullData, void>

/** BullMQ orders prioritized jobs by priority times this, plus a counter. A smaller priority comes first; 0 means none. */
const UNIT = 0x1_0000_0000
/** BullMQ's limit is 2,097,151. */
const MAX_PLACE = 2_000_000
/** Above this number, the places of tenants without waiting jobs are forgotten. */
const MAX_KNOWN = 1_000

/**
 * Gives a job the place of its tenant in the ring (fair-order.ts), which is its priority in BullMQ. So the jobs of a tenant are together
 * and in order, and one that waits again is the first of them. After the last place the first one is given out again; two tenants may then
 * share one.
 *
 * KEYS: 1 the places: `*last`, `*served` and each tenant's; 2 the prioritized jobs; 3 the failed jobs.
 * Returns the place; 0 when the job waits or is handled already, -1 when it is listed as failed.
 */
const PLACE = `
local places, waiting, failed = KEYS[1], KEYS[2], KEYS[3]
local prefix, id, tenant, limit, known = ARGV[1], ARGV[2], 't' .. ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
if redis.call('EXISTS', prefix .. id) == 1 then
  return redis.call('ZSCORE', failed, id) and -1 or 0
end
local place = redis.call('HGET', places, tenant)
if place then return tonumber(place) end
local last = tonumber(redis.call('HGET', places, '*last') or 0)
if redis.call('HLEN', places) > known and redis.call('ZCARD', waiting) == 0 then redis.call('DEL', places) end
place = last < limit and last + 1 or 1
redis.call('HSET', places, '*last', place, tenant, place)
return place
`

/** How many jobs without a place are checked: those of dead consumers, and those of earlier versions. */
const LOOKED_AT = 1_000

/**
 * Makes the job whose turn it is the next one that BullMQ hands out. The tenants among the arguments have their shares: their jobs are
 * passed over, or with `any` come after those of the others. Before, with `last`, it notes the place of the job that was taken last, for one that was not chosen. As a consumer that passes jobs over has used up BullMQ's marker of waiting
 * jobs, it is set again for the other consumers. BullMQ sets it whenever it hands out a job: where no further one waits it is removed, since every
 * consumer would look in vain.
 *
 * KEYS: 1 the jobs without a place, of which BullMQ takes the last one first; 2 the prioritized jobs; 3 the places; 4 the marker; 5 the active jobs, the
 * latest first. Returns 1 when there is a next job, 0 when none waits, -1 when all were passed over.
 */
const CHOOSE = `
local listed, waiting, places, marker, active = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local prefix, unit, count, any = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == 'any'
if ARGV[5] == 'last' then
  local place = redis.call('HGET', prefix .. (redis.call('LINDEX', active, 0) or ''), 'priority')
  if place then redis.call('HSET', places, '*served', place) end
end
local hasShare = {}
for i = 6, #ARGV do hasShare[ARGV[i]] = true end
local function isPassedOver(id)
  local data = redis.call('HGET', prefix .. id, 'data')
  return data and hasShare[cjson.decode(data).tenant]
end
local ids = redis.call('LRANGE', listed, -count, -1)
for i = #ids, 1, -1 do
  if not isPassedOver(ids[i]) then
    if i < #ids then
      redis.call('LREM', listed, -1, ids[i])
      redis.call('RPUSH', listed, ids[i])
    end
    return 1
  end
end
local function choose(id, place)
  redis.call('ZREM', waiting, id)
  redis.call('RPUSH', listed, id)
  redis.call('HSET', places, '*served', place)
  return 1
end
local scoreOf = function(place) return string.format('%.0f', place * unit) end
local first, firstPlace
local function look(from, to)
  while true do
    local found = redis.call('ZRANGEBYSCORE', waiting, from, to, 'WITHSCORES', 'LIMIT', 0, 1)
    if not found[1] then return end
    local id, place = found[1], math.floor(tonumber(found[2]) / unit)
    if not isPassedOver(id) then return choose(id, place) end
    if not first then first, firstPlace = id, place end
    from = scoreOf(place + 1)
  end
end
local after = scoreOf(tonumber(redis.call('HGET', places, '*served') or 0) + 1)
local chosen = look(after, '+inf') or look('-inf', '(' .. after)
if chosen then return chosen end
if #ids == 0 and not first then
  redis.call('ZREM', marker, '0')
  return 0
end
if any then return #ids > 0 and 1 or choose(first, firstPlace) end
redis.call('ZADD', marker, 0, '0')
return -1
`

/** Among the first jobs of how many tenants the oldest one is searched. */
const MAX_TENANTS = 1_000

/**
 * KEYS: 1 the jobs that wait without a place, 2 those that wait with one, 3 the active ones, 4 those that have failed. Returns the number of
 * waiting, active and failed jobs, and how long the oldest one has waited. A tick waits from the time in its id on.
 */
const COUNT = `
local prefix, unit = ARGV[1], tonumber(ARGV[2])
local ids = { redis.call('LINDEX', KEYS[1], -1) or nil }
local from = '-inf'
for i = 1, ARGV[3] do
  local found = redis.call('ZRANGEBYSCORE', KEYS[2], from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if not found[1] then break end
  ids[#ids + 1] = found[1]
  from = string.format('%.0f', (math.floor(tonumber(found[2]) / unit) + 1) * unit)
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local oldest = now
for _, id in ipairs(ids) do
  local since = tonumber(string.match(id, ':(%d+)$') or redis.call('HGET', prefix .. id, 'timestamp') or now)
  oldest = math.min(oldest, since)
end
return {
  redis.call('LLEN', KEYS[1]) + redis.call('ZCARD', KEYS[2]),
  redis.call('LLEN', KEYS[3]),
  redis.call('ZCARD', KEYS[4]),
  now - oldest,
}
`

/** KEYS: the failed jobs. Returns the ids among the arguments that have no job, or one that is listed as failed. */
const MISSING = `
local missing = {}
for i = 2, #ARGV do
  if redis.call('EXISTS', ARGV[1] .. ARGV[i]) == 0 or redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    missing[#missing + 1] = ARGV[i]
  end
end
return missing
`

/** The place of a job, or its state: `ended` when the job has failed before and is still listed, `known` when it waits or is handled. */
export type Place = number | 'known' | 'ended'

export async function placeOf(queue: BullKeys, { tenant, id }: Job, maxPlace = MAX_PLACE): Promise<Place> {
  const keys = [placesOf(queue), ...keysOf(queue, 'prioritized', 'failed')]
  const place = Number(await run(queue, 'aePlace', keys, [queue.toKey(''), id, tenant, maxPlace, MAX_KNOWN]))
  if (place > 0) return place
  return place === 0 ? 'known' : 'ended'
}

export type Choice = 'ready' | 'none' | 'passed_over'

/** `withShare`: the tenants whose jobs are passed over, or with `isAnyFree` come after the others. `isAfterFirst`: the job that was taken last was not chosen by this. */
export async function chooseNext(
  queue: BullKeys,
  {
    withShare,
    isAnyFree,
    isAfterFirst = false,
  }: { withShare: Iterable<TenantId>; isAnyFree: boolean; isAfterFirst?: boolean },
): Promise<Choice> {
  const [listed = '', waiting = '', marker = '', active = ''] = keysOf(queue, 'wait', 'prioritized', 'marker', 'active')
  const args = [queue.toKey(''), UNIT, LOOKED_AT, isAnyFree ? 'any' : 'below', isAfterFirst ? 'last' : '', ...withShare]
  const choice = await run(queue, 'aeChoose', [listed, waiting, placesOf(queue), marker, active], args)
  if (choice === 1) return 'ready'
  return choice === 0 ? 'none' : 'passed_over'
}

export async function countJobs(queue: BullKeys): Promise<JobCounts> {
  const keys = keysOf(queue, 'wait', 'prioritized', 'active', 'failed')
  const counts = (await run(queue, 'aeCount', keys, [queue.toKey(''), UNIT, MAX_TENANTS])) as number[]
  const [waiting = 0, active = 0, failed = 0, oldestWaitingMs = 0] = counts
  return { waiting, active, failed, oldestWaitingMs }
}

/** The owners that have locked active jobs. */
export async function ownersOf(queue: BullKeys): Promise<string[]> {
  return (await run(queue, 'aeOwners', keysOf(queue, 'active'), [queue.toKey('')])) as string[]
}

/**
 * Takes the locks of an owner from its jobs. Returns how many there were; BullMQ's check for stalled jobs, which is
 * made due at once, then finds them.
 */
export async function releaseJobs(queue: BullKeys, owner: string): Promise<number> {
  const keys = keysOf(queue, 'active', 'stalled', 'stalled-check')
  return Number(await run(queue, 'aeReleaseJobs', keys, [queue.toKey(''), owner]))
}

export async function missingJobs(queue: BullKeys, ids: readonly string[]): Promise<string[]> {
  return (await run(queue, 'aeMissing', keysOf(queue, 'failed'), [queue.toKey(''), ...ids])) as string[]
}

/** KEYS: the active jobs. Returns the part before the first colon of the tokens that lock them. */
const OWNERS = `
local owners, seen = {}, {}
for _, id in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  local token = redis.call('GET', ARGV[1] .. id .. ':lock')
  local owner = token and string.match(token, '^[^:]+')
  if owner and not seen[owner] then
    seen[owner] = true
    owners[#owners + 1] = owner
  end
end
return owners
`

/** KEYS: 1 the active jobs; 2 those that BullMQ hands out again unless they have a lock; 3 a mark while BullMQ does not look for such jobs. */
const RELEASE = `
local prefix, owner, released = ARGV[1], ARGV[2] .. ':', 0
for _, id in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  local lock = prefix .. id .. ':lock'
  local token = redis.call('GET', lock)
  if token and string.sub(token, 1, #owner) == owner then
    redis.call('DEL', lock)
    redis.call('SADD', KEYS[2], id)
    released = released + 1
  end
end
if released > 0 then redis.call('DEL', KEYS[3]) end
return released
`

const SCRIPTS = {
  aePlace: { lua: PLACE, numberOfKeys: 3 },
  aeChoose: { lua: CHOOSE, numberOfKeys: 5 },
  aeCount: { lua: COUNT, numberOfKeys: 4 },
  aeMissing: { lua: MISSING, numberOfKeys: 1 },
  aeOwners: { lua: OWNERS, numberOfKeys: 1 },
  aeReleaseJobs: { lua: RELEASE, numberOfKeys: 3 },
} as const

const defined = new WeakSet<object>()

async function run(
  queue: BullKeys,
  name: keyof typeof SCRIPTS,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  const client = await queue.getBackend().client
  if (!defined.has(queue)) {
    for (const [each, script] of Object.entries(SCRIPTS)) client.defineCommand(each, script)
    defined.add(queue)
  }
  return client.runCommand(name, [...keys, ...args])
}

const keysOf = (queue: BullKeys, ...names: string[]): string[] => names.map((name) => queue.toKey(name))

/** On the same node of a Redis Cluster as BullMQ's keys. */
const placesOf = (queue: BullKeys): string => `${queue.opts.prefix}:places`
