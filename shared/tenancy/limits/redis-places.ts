import { isJsonObject, parseJson } from '../../kernel/json.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { RedisLink, Script } from '../../platform/redis/link.ts'
import {
  type LineNews,
  LOOKED_MS,
  PLACE_MS,
  type PlaceLimits,
  type RunPlaces,
  type StartLine,
  type TakenPlace,
  type WaitingStart,
} from './port.ts'
import { BATCH_ITEMS } from './start-order.ts'

/** A sorted set per tenant, and per customer: the runs, by the time at which their places are free again, by Redis's clock. */
const CLOCK = `local t = redis.call('TIME')
  local now = t[1] * 1000 + math.floor(t[2] / 1000)`

const CLEAN = `${CLOCK}
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)`

/**
 * Keys: the waiting starts, the facts about the queue, the tenant's places, those of the customer. The facts: `run_ms`, `lower_at`, until when a
 * place is kept free (`kept_until`), and the turns of each customer, divided by its weight, as `of:<customer>`.
 */
const TAKE: Script = {
  name: 'aeTakeRunPlace',
  keys: 'any',
  lua: `${CLOCK}
  local run, placeMs, turn = ARGV[1], ARGV[2], ARGV[3]
  local waiting, full = redis.call('HLEN', KEYS[1]), nil
  for i = 3, #KEYS do
    redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now)
    local limit, isNew = tonumber(ARGV[i + 1]), not redis.call('ZSCORE', KEYS[i], run)
    if limit >= 0 and isNew and redis.call('ZCARD', KEYS[i]) >= limit then full = full or (i == 3 and 'full' or 'customer_full') end
  end
  local runMs, yields = redis.call('HGET', KEYS[2], 'run_ms') or '0', ARGV[7] == '1'
  if yields and not full and tonumber(redis.call('HGET', KEYS[2], 'kept_until') or '0') > now and not redis.call('ZSCORE', KEYS[3], run) then
    full = 'customer_full'
  end
  if full and not yields and ARGV[4] == '1' then
    for _, text in ipairs(redis.call('HVALS', KEYS[1])) do
      if cjson.decode(text).customer == ARGV[8] then waiting = waiting - 1 end
    end
  end
  if full then return {full, waiting, runMs} end
  if turn == '' and waiting > 0 and not redis.call('ZSCORE', KEYS[3], run) then return {'behind', waiting, runMs} end
  local start = waiting > 0 and redis.call('HGET', KEYS[1], run)
  if start then
    redis.call('HDEL', KEYS[1], run)
    redis.call('HINCRBYFLOAT', KEYS[2], 'of:' .. (cjson.decode(start).customer or ''), ARGV[6])
  end
  if turn ~= '' and turn ~= 'interactive' then redis.call('HSET', KEYS[2], 'lower_at', now) end
  for i = 3, #KEYS do
    redis.call('ZADD', KEYS[i], now + placeMs, run)
    redis.call('PEXPIRE', KEYS[i], placeMs)
  end
  return {'taken', waiting, runMs}`,
}

const RENEW: Script = {
  name: 'aeRenewPlaces',
  keys: 1,
  lua: `${CLEAN}
  for i = 2, #ARGV do redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[i]) end
  redis.call('PEXPIRE', KEYS[1], ARGV[1])`,
}

/** The same keys as TAKE, without the starts. */
const RELEASE: Script = {
  name: 'aeReleaseRunPlace',
  keys: 'any',
  lua: `for i = 2, #KEYS do redis.call('ZREM', KEYS[i], ARGV[1]) end
  if ARGV[2] == '' then return end
  local before = tonumber(redis.call('HGET', KEYS[1], 'run_ms') or '0')
  local usual = before > 0 and 0.8 * before + 0.2 * ARGV[2] or tonumber(ARGV[2])
  redis.call('HSET', KEYS[1], 'run_ms', math.floor(usual + 0.5))
  redis.call('PEXPIRE', KEYS[1], ARGV[3])`,
}

const KEEP_FREE: Script = {
  name: 'aeKeepPlaceFree',
  keys: 1,
  lua: `${CLOCK}
  redis.call('HSET', KEYS[1], 'kept_until', now + ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])`,
}

const COUNT: Script = { name: 'aeCountPlaces', keys: 1, lua: `${CLEAN} return redis.call('ZCARD', KEYS[1])` }

const IS_WAITING: Script = {
  name: 'aeStartIsWaiting',
  keys: 1,
  lua: `return redis.call('HEXISTS', KEYS[1], ARGV[1])`,
}

/** Keys: the waiting starts, the facts about the queue, when each process checked it last, the tenant's places, those of customers. */
const LOOK: Script = {
  name: 'aeLookAtStarts',
  keys: 'any',
  lua: `${CLOCK}
  local news, lookedMs = cjson.decode(ARGV[1]), tonumber(ARGV[2])
  redis.call('ZADD', KEYS[3], now + lookedMs, news.process)
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
  local looks, starts, waits, least = {}, {}, {}, nil
  for _, process in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do looks[process] = true end
  local gone = {}
  for _, run in ipairs(news.left) do gone[run] = true end
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    local start = cjson.decode(all[i + 1])
    if not looks[start.process] or (gone[all[i]] and start.process == news.process) then redis.call('HDEL', KEYS[1], all[i])
    else
      waits['of:' .. (start.customer or '')] = true
      starts[all[i]] = all[i + 1]
    end
  end
  local facts = redis.call('HGETALL', KEYS[2])
  local known, turns = {}, {}
  for i = 1, #facts, 2 do
    if string.sub(facts[i], 1, 3) ~= 'of:' then known[facts[i]] = facts[i + 1]
    elseif not waits[facts[i]] then redis.call('HDEL', KEYS[2], facts[i])
    else
      turns[facts[i]] = tonumber(facts[i + 1])
      least = math.min(least or turns[facts[i]], turns[facts[i]])
    end
  end
  for _, start in ipairs(news.joined) do
    local name = 'of:' .. (start.customer or '')
    if not turns[name] then
      turns[name] = least or 0
      redis.call('HSET', KEYS[2], name, turns[name])
    end
    start.since, start.process, start.waitedMs = now - start.waitedMs, news.process, nil
    starts[start.runId] = cjson.encode(start)
    redis.call('HSET', KEYS[1], start.runId, starts[start.runId])
  end
  for _, key in ipairs({KEYS[1], KEYS[3]}) do redis.call('PEXPIRE', key, lookedMs) end
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
  local counts, ofCustomers, texts = {}, {}, {}
  for _, text in pairs(starts) do texts[#texts + 1] = text end
  for i = 4, #KEYS do
    redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now)
    counts[#counts + 1] = redis.call('ZCARD', KEYS[i])
  end
  for name, count in pairs(turns) do
    ofCustomers[#ofCustomers + 1] = name
    ofCustomers[#ofCustomers + 1] = tostring(count)
  end
  local isKept = tonumber(known.kept_until or '0') > now and 1 or 0
  return {now, texts, counts, ofCustomers, known.lower_at or '0', known.run_ms or '0', isKept}`,
}

/** How long the usual duration of a tenant's runs is remembered. */
const KEPT_MS = 24 * 3_600_000

type Link = Pick<RedisLink, 'run' | 'prefix'>

/** The places of a cluster, counted over all its processes. A tenant's keys are in one slot: that of its places. */
export function createRedisRunPlaces({ run, prefix }: Link, lookedMs = LOOKED_MS): RunPlaces {
  const placesOf = (tenant: TenantId) => `places:${tenant}`
  const besides = (tenant: TenantId, what: string) => `{${prefix}${placesOf(tenant)}}:${what}`
  const ofCustomer = (tenant: TenantId, customer: string) => besides(tenant, `of:${customer}`)
  const keysOf = ({ tenant, customer }: { tenant: TenantId; customer?: string | undefined }) => [
    besides(tenant, 'facts'),
    placesOf(tenant),
    ...(customer === undefined ? [] : [ofCustomer(tenant, customer)]),
  ]
  return {
    async take(placed, limits, turn) {
      const { tenant, customer } = placed
      const keys = [besides(tenant, 'starts'), ...keysOf({ tenant, ...(limits.customer !== null && { customer }) })]
      const args = [placed.runId, PLACE_MS, turn ?? '', ...limitArgs(limits)]
      const [place, waiting, runMs] = (await run(TAKE, keys, args)) as [TakenPlace['place'], number, string]
      return { place, waiting, runMs: Number(runMs) }
    },
    async renew(tenant, runs) {
      if (runs.length === 0) return
      const groups = Map.groupBy(runs, ({ customer }) => customer)
      const renewed = [...groups].flatMap(([customer, of]) =>
        customer === undefined ? [] : [{ key: ofCustomer(tenant, customer), of }],
      )
      const all = [{ key: placesOf(tenant), of: runs }, ...renewed]
      await Promise.all(all.map(({ key, of }) => run(RENEW, [key], [PLACE_MS, ...of.map(({ runId }) => runId)])))
    },
    async release(placed, ranMs) {
      await run(RELEASE, keysOf(placed), [placed.runId, ranMs === undefined ? '' : Math.round(ranMs), KEPT_MS])
    },
    keepFree: async (tenant, ms) => void (await run(KEEP_FREE, [besides(tenant, 'facts')], [ms, KEPT_MS])),
    count: async (tenant) => Number(await run(COUNT, [placesOf(tenant)], [])),
    isWaiting: async (tenant, runId) => (await run(IS_WAITING, [besides(tenant, 'starts')], [runId])) === 1,
    async look(tenant, news) {
      const [facts = '', places = ''] = keysOf({ tenant })
      const customers = news.customers.map((name) => ofCustomer(tenant, name))
      const keys = [besides(tenant, 'starts'), facts, besides(tenant, 'looks'), places, ...customers]
      return lineOf(news, (await run(LOOK, keys, [JSON.stringify(news), lookedMs, KEPT_MS])) as Looked)
    },
  }
}

const limitArgs = ({ tenant, customer, weight = 1, yields }: PlaceLimits) => [
  ...[tenant ?? -1, customer ?? -1, 1 / weight, yields ? 1 : ''],
  BATCH_ITEMS,
]

type Looked = [
  now: number,
  starts: string[],
  counts: number[],
  turns: (string | number)[],
  lowerAt: string,
  runMs: string,
  isKept: 0 | 1,
]

function lineOf(
  { customers }: Pick<LineNews, 'customers'>,
  [now, starts, counts, turns, lowerAt, runMs, isKept]: Looked,
): StartLine {
  const names = turns.filter((_, at) => at % 2 === 0)
  return {
    now,
    starts: starts.flatMap((text) => (isJsonObject(parseJson(text)) ? [parseJson(text) as WaitingStart] : [])),
    atWork: counts[0] ?? 0,
    atWorkOf: new Map(customers.map((name, at) => [name, counts[at + 1] ?? 0])),
    turnsOf: new Map(names.map((name, at) => [String(name).slice('of:'.length), Number(turns[2 * at + 1])])),
    lowerAt: Number(lowerAt),
    runMs: Number(runMs),
    isKeptFree: isKept === 1,
  }
}
