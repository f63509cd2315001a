import type { Queue } from 'bullmq'
import type { BullData } from './bullmq-redis.ts'
import type { Job, JobCounts } from './port.ts'

/** BullMQ orders prioritized jobs by priority times this, plus a counter. A smaller priority comes first, and 0 is none. */
const UNIT = 0x1_0000_0000
/** BullMQ's limit is 2,097,151. */
const MAX_ROUND = 2_000_000

/**
 * Gives a job its round, as FairOrder does. The round of the job taken last is not known here; it is at least the smallest waiting one
 * less 1, and at least what it was before. When nothing waits, it is taken to be the largest one given so far, and the tenants whose last
 * round is over are forgotten. Near the limit all rounds are reduced alike.
 *
 * KEYS: 1 the state: `*now`, `*top` and each tenant's last round; 2 the prioritized jobs; 3 the active jobs; 4 the failed jobs.
 * Returns the round; 0 when the job waits or is handled already, -1 when it is listed as failed.
 */
const TAKE_ROUND = `
local state, waiting, active, failed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local prefix, id, tenant = ARGV[1], ARGV[2], ARGV[3]
local limit, unit = tonumber(ARGV[4]), tonumber(ARGV[5])
if redis.call('EXISTS', prefix .. id) == 1 then
  return redis.call('ZSCORE', failed, id) and -1 or 0
end
local now = tonumber(redis.call('HGET', state, '*now') or 1)
local top = tonumber(redis.call('HGET', state, '*top') or 1)
local first = redis.call('ZRANGE', waiting, 0, 0, 'WITHSCORES')[2]
if first then
  now = math.max(now, math.floor(tonumber(first) / unit) - 1)
else
  now = top
  local lasts = redis.call('HGETALL', state)
  for i = 1, #lasts, 2 do
    if tonumber(lasts[i + 1]) < now then redis.call('HDEL', state, lasts[i]) end
  end
end
local round = math.max(now, tonumber(redis.call('HGET', state, tenant) or 0) + 1)
if round >= limit and now > 1 then
  local less = now - 1
  local jobs = redis.call('ZRANGE', waiting, 0, -1, 'WITHSCORES')
  for i = 1, #jobs, 2 do
    local score = tonumber(jobs[i + 1]) - less * unit
    redis.call('ZADD', waiting, score, jobs[i])
    redis.call('HSET', prefix .. jobs[i], 'priority', math.floor(score / unit))
  end
  for _, each in ipairs(redis.call('LRANGE', active, 0, -1)) do redis.call('HSET', prefix .. each, 'priority', 1) end
  local lasts = redis.call('HGETALL', state)
  for i = 1, #lasts, 2 do redis.call('HSET', state, lasts[i], math.max(0, tonumber(lasts[i + 1]) - less)) end
  now, top, round = 1, math.max(1, top - less), round - less
end
round = math.min(round, limit)
redis.call('HSET', state, '*now', now, '*top', math.max(top, round), tenant, round)
return round
`

/** The jobs among which the oldest waiting one is looked for. Each tenant's oldest one is among the first. */
const LOOKED_AT = 100

/**
 * KEYS: the jobs that 1 wait without a priority and 2 with one, that 3 are active, that 4 have failed. Returns the number of waiting,
 * active and failed jobs, and how long the oldest one has waited. A tick waits from the time in its id on.
 */
const COUNT = `
local prefix = ARGV[1]
local ids = redis.call('ZRANGE', KEYS[2], 0, ARGV[2] - 1)
local last = redis.call('LINDEX', KEYS[1], -1)
if last then ids[#ids + 1] = last end
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

/** The round of a job, or its state: `ended` when the job has failed earlier and is still listed, `known` when it waits or is handled. */
export type Round = number | 'known' | 'ended'

export async function takeRound(queue: Queue<BullData>, { tenant, id }: Job, maxRound = MAX_ROUND): Promise<Round> {
  const keys = [`${queue.opts.prefix}:fair`, ...keysOf(queue, 'prioritized', 'active', 'failed')]
  const round = Number(await run(queue, 'aeTakeRound', keys, [queue.toKey(''), id, tenant, maxRound, UNIT]))
  if (round > 0) return round
  return round === 0 ? 'known' : 'ended'
}

export async function countJobs(queue: Queue<BullData>): Promise<JobCounts> {
  const keys = keysOf(queue, 'wait', 'prioritized', 'active', 'failed')
  const counts = (await run(queue, 'aeCount', keys, [queue.toKey(''), LOOKED_AT])) as number[]
  const [waiting = 0, active = 0, failed = 0, oldestWaitingMs = 0] = counts
  return { waiting, active, failed, oldestWaitingMs }
}

export async function missingJobs(queue: Queue<BullData>, ids: readonly string[]): Promise<string[]> {
  return (await run(queue, 'aeMissing', keysOf(queue, 'failed'), [queue.toKey(''), ...ids])) as string[]
}

const SCRIPTS = {
  aeTakeRound: { lua: TAKE_ROUND, numberOfKeys: 4 },
  aeCount: { lua: COUNT, numberOfKeys: 4 },
  aeMissing: { lua: MISSING, numberOfKeys: 1 },
} as const

const defined = new WeakSet<object>()

async function run(
  queue: Queue<BullData>,
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

const keysOf = (queue: Queue<BullData>, ...names: string[]): string[] => names.map((name) => queue.toKey(name))
