import { isJsonObject, parseJson } from '../../kernel/json.ts'
import type { RedisLink, Script } from '../../platform/redis/link.ts'
import type { Room } from './decide.ts'
import type { RoomAnswer, RoomRequest, Rooms } from './port.ts'
import { stateOf } from './rooms.ts'

/** The rooms of a scope live this long without a call, and have this many models at most. */
const KEPT_MS = 24 * 3_600_000
const MAX_MODELS = 200

/**
 * A hash for each instance: its models, each with its `Room` as JSON, by Redis's clock. The functions are those of `decide.ts`, and pass the
 * same tests. 0 stands for infinity in an answer.
 */
const ASK: Script = {
  name: 'aeAskRoom',
  keys: 1,
  lua: `local t = redis.call('TIME')
  local now = t[1] * 1000 + math.floor(t[2] / 1000)
  local ask = cjson.decode(ARGV[2])
  local MINUTE, BURST, KEPT, SHRINKS, MOST = 60000, 1 / 12, 0.03, 10000, 0.9
  local function pool()
    return {limit = 0, guessedAt = 0, counted = 0, room = 0, pace = 0, at = now, wholeAt = 0, sent = 0, minute = now, used = 0, usedBefore = 0}
  end
  local text = redis.call('HGET', KEYS[1], ARGV[1])
  local room = text and cjson.decode(text) or {pools = {pool(), pool()}, closedUntil = 0, isProbe = false, refused = 0, members = {}}

  local function count(p, cap)
    local limit = p.limit
    if p.guessedAt > 0 then limit = limit * 1.1 ^ ((now - p.guessedAt) / MINUTE) end
    if limit == 0 then limit = cap elseif cap > 0 then limit = math.min(limit, cap) end
    p.counted = limit
  end
  local function paceOf(p)
    if p.wholeAt == 0 then return p.counted / MINUTE end
    return math.max(p.room, p.counted * KEPT) / math.max(p.wholeAt - now, 1000)
  end
  local function recent(p) return p.used + p.usedBefore * math.max(0, 1 - (now - p.minute) / MINUTE) end
  local function refill(p, cap)
    local ms = math.max(0, now - p.at)
    p.at = now
    local minutes = math.floor((now - p.minute) / MINUTE)
    if minutes > 0 then
      p.usedBefore = minutes > 1 and 0 or p.used
      p.used = 0
      p.minute = p.minute + minutes * MINUTE
    end
    if p.guessedAt > 0 and now - p.guessedAt > 600000 then p.limit, p.guessedAt = 0, 0 end
    local before = p.counted
    count(p, cap)
    if p.counted == 0 then return end
    if before == 0 then p.room, p.pace, p.wholeAt = p.counted, p.counted * BURST, 0 end
    p.pace = math.min(p.counted * BURST, p.pace + paceOf(p) * ms)
    if p.wholeAt == 0 then p.room = p.room + p.counted / MINUTE * ms
    elseif now >= p.wholeAt then p.room, p.pace, p.wholeAt = p.counted, math.max(p.pace, 1), 0 end
    p.room = math.min(p.counted, p.room)
  end
  local function tell(p, i)
    local limit = ask.told.limits[i]
    if type(limit) ~= 'table' then return end
    local resetMs, perMs = math.min(limit.resetMs or 0, MINUTE), limit.limit / MINUTE
    local refillMs = (limit.limit - limit.left) / perMs
    local wholeAt = now + resetMs - ask.told.ageMs
    local isSameEnd = p.wholeAt > now and resetMs > 0 and math.abs(wholeAt - p.wholeAt) < 2000
    local isSooner = resetMs > 0 and resetMs < refillMs / 2 - 1000
    local isWindow = isSameEnd or isSooner or resetMs > 1.5 * refillMs + 1000
    local left = isWindow and limit.left or math.min(limit.limit, limit.left + perMs * ask.told.ageMs)
    local left = left - (p.sent - ask.told.sent[i])
    local isNew = p.counted == 0
    p.limit, p.guessedAt = limit.limit, 0
    count(p, ask.caps[i])
    if isNew then p.room, p.pace = left, p.counted * BURST end
    if p.counted < limit.limit then p.room = math.min(p.room, left)
    else p.room, p.wholeAt = left, isWindow and wholeAt or 0 end
  end
  local function take(p, amount)
    p.sent, p.used = p.sent + amount, p.used + amount
    if p.counted > 0 then p.room, p.pace = p.room - amount, p.pace - amount end
  end
  for i, p in ipairs(room.pools) do
    refill(p, ask.caps[i])
    take(p, ask.spent[i])
  end
  if ask.told then for i, p in ipairs(room.pools) do tell(p, i) end end
  if ask.refusedMs then
    room.closedUntil = math.max(room.closedUntil, now + ask.refusedMs)
    room.refused, room.isProbe = room.refused + 1, true
    for _, p in ipairs(room.pools) do p.pace = math.min(p.pace, 0) end
    local p = room.pools[1]
    if recent(room.pools[2]) >= 100 and (p.limit == 0 or p.guessedAt > 0) then
      p.limit = (p.counted > 0 and math.min(recent(p), p.counted) or recent(p)) * MOST
      p.guessedAt, p.counted, p.room, p.pace, p.wholeAt = now, p.limit, 0, 0, 0
    end
  end

  local function newHealth() return {inRow = 0, answered = 0, failed = 0, at = now, restsUntil = 0, trialUntil = 0} end
  local h = room.health or newHealth()
  local answered, failed, inRow = unpack(ask.outcomes or {0, 0, 0})
  if answered + failed > 0 then
    local kept = 0.5 ^ (math.max(0, now - h.at) / 30000)
    h.inRow = answered > 0 and inRow or h.inRow + inRow
    h.answered, h.failed, h.at = h.answered * kept + answered, h.failed * kept + failed, now
    local all = h.answered + h.failed
    local isFailing = h.inRow >= 3 or (all >= 10 and h.failed / all >= 0.5)
    if h.restsUntil <= now then
      if h.restsUntil > 0 and answered > 0 and inRow == 0 then h = newHealth()
      elseif h.restsUntil > 0 or isFailing then h.restsUntil, h.trialUntil = now + 30000, 0 end
    end
  end
  local isTrial = ask.isTrial == true and h.restsUntil > 0 and now >= h.restsUntil and now >= h.trialUntil
  if isTrial then h.trialUntil = now + 30000 end
  room.health = h

  local before, leastServed, places, waiting, weights, countWaiting = room.members[ask.process], nil, 0, {}, 0, 0
  for id, each in pairs(room.members) do
    if now - each.seen > 30000 then room.members[id] = nil
    elseif id ~= ask.process then
      places = places + each.places
      if each.waiting > 0 then leastServed = math.min(leastServed or each.served, each.served) end
      if each.waiting > 0 and now - each.seen < 3000 then
        waiting[#waiting + 1] = each
        weights, countWaiting = weights + each.weight, countWaiting + each.waiting
      end
    end
  end
  local served = before and before.served or 0
  if leastServed and not (before and before.waiting > 0) then served = math.max(served, leastServed) end
  local member = {seen = now, places = ask.atWork, waiting = ask.waiting, weight = ask.weight, served = served}
  room.members[ask.process] = member

  local function keptOf(p)
    return KEPT * p.counted * (p.wholeAt == 0 and 1 or math.min(1, math.max(0, p.wholeAt - now) / SHRINKS))
  end
  local function fitsIn(p, amount)
    if p.counted == 0 then return 0 end
    local lacks = math.min(amount, MOST * p.counted) + (ask.isFirst and 0 or keptOf(p)) - p.room
    local later = p.wholeAt > 0 and p.wholeAt - now or lacks / (p.counted / MINUTE)
    local paceMs = (ask.isFirst or p.pace > 0) and 0 or (1 - p.pace) / paceOf(p)
    return math.max(lacks > 0 and later or 0, paceMs)
  end
  local function retryIn()
    if room.closedUntil > now then return room.closedUntil - now end
    if ask.concurrent > 0 and places + ask.atWork > ask.concurrent then return 250 end
    if room.isProbe then return 0 end
    local turn = room.pools[1].counted / MINUTE * 1000 / (weights + math.max(ask.weight, 1))
    local ms = math.max(fitsIn(room.pools[1], ask.next[1]), fitsIn(room.pools[2], ask.next[2]))
    for _, each in ipairs(waiting) do
      if not ask.isFirst and turn > 0 and each.served < member.served - turn then ms = math.max(ms, 50) end
    end
    return ms
  end
  local share = ask.weight / (weights + math.max(ask.weight, 1))
  local function give(p, i)
    if p.counted == 0 then return ask.next[i] end
    local spare = math.min(p.pace * share, (p.room - keptOf(p)) / 4)
    local given = math.max(ask.next[i], math.floor(math.min(ask.want[i], spare)))
    if p.wholeAt == 0 and (p.limit == 0 or p.counted < p.limit) then p.wholeAt = now + MINUTE end
    take(p, given)
    return given
  end
  local isAsked = ask.next[2] > 0
  local retryMs = isAsked and retryIn() or 0
  local granted = {0, 0}
  if isAsked and retryMs == 0 then
    granted = {give(room.pools[1], 1), give(room.pools[2], 2)}
    room.isProbe = false
    member.served = member.served + granted[1] / math.max(member.weight, 1)
    member.waiting = math.max(0, member.waiting - granted[2])
  elseif isAsked then member.places = ask.atWork - 1 end
  if text or redis.call('HLEN', KEYS[1]) < tonumber(ARGV[4]) then
    redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(room))
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
  end
  local function ofPools(read) return {read(room.pools[1]), read(room.pools[2])} end
  return cjson.encode({
    granted = granted, sent = ofPools(function(p) return p.sent end), retryMs = math.ceil(retryMs),
    closedMs = math.max(0, room.closedUntil - now), othersWait = #waiting > 0, limit = ofPools(function(p) return p.counted end),
    used = ofPools(function(p) return math.floor(recent(p) + 0.5) end), atWork = places + member.places,
    waiting = countWaiting + member.waiting, refused = room.refused, health = h, now = now, isTrial = isTrial})`,
}

const READ: Script = {
  name: 'aeReadRooms',
  keys: 1,
  lua: `local t = redis.call('TIME')
  return {t[1] * 1000 + math.floor(t[2] / 1000), redis.call('HGETALL', KEYS[1])}`,
}

/** The rooms of a cluster. */
export function createRedisRooms(run: RedisLink['run']): Rooms {
  return {
    async ask(scope, model, request) {
      const answer = await run(ASK, [`room:${scope}`], [model, JSON.stringify(sentForm(request)), KEPT_MS, MAX_MODELS])
      const read = parseJson(String(answer)) as RoomAnswer
      const [tokens, requests] = read.limit
      return { ...read, limit: [tokens || Number.POSITIVE_INFINITY, requests || Number.POSITIVE_INFINITY] }
    },
    async look(scope) {
      const [now, entries] = (await run(READ, [`room:${scope}`], [])) as [number, string[]]
      return entries.flatMap((model, at) => {
        const room = at % 2 === 0 ? parseJson(entries[at + 1] ?? '') : undefined
        return isJsonObject(room) ? [{ model, state: stateOf(room as Room, now) }] : []
      })
    },
  }
}

/** JSON has no infinity, and Lua's lists no gaps. */
function sentForm({ caps, told, ...request }: RoomRequest) {
  const finite = (value: number) => (value === Number.POSITIVE_INFINITY ? 0 : value)
  return {
    ...request,
    caps: caps.perMinute.map(finite),
    concurrent: finite(caps.concurrent),
    ...(told && { told: { ...told, limits: told.limits.map((limit) => limit ?? false) } }),
  }
}
