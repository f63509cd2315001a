import type { RedisLink, Script } from '../../platform/redis/link.ts'
import { type BudgetHolds, HOLD_MS, type HoldAnswer, type HoldRequest, isDay, type Spent } from './port.ts'

/**
 * A hash for each budget: `total` is the reported spending; each other field is a holder with its spending at its last request, its
 * reservation and when that ends, by Redis's clock. It decides like `decideHolds`, but also counts the reservations of others.
 */
const ASK: Script = {
  name: 'aeHoldBudgets',
  keys: 'any',
  lua: `local t = redis.call('TIME')
  local now = t[1] * 1000 + math.floor(t[2] / 1000)
  local function numbers(text)
    local found = {}
    for each in string.gmatch(text, '%S+') do found[#found + 1] = tonumber(each) end
    return found
  end
  local function text(...) return string.format(string.rep('%.17g ', select('#', ...)), ...) end
  local function look(key, id, own, told, known, limit, atWork, next, reserve)
    local total, others = {0, 0}, {0, 0, 0}
    local all = redis.call('HGETALL', key)
    for i = 1, #all, 2 do
      local values = numbers(all[i + 1])
      if all[i] == 'total' then total = values
      elseif all[i] == id then told = values
      elseif values[6] <= now then redis.call('HDEL', key, all[i])
      else for n = 1, 3 do others[n] = others[n] + values[n + 2] end end
    end
    local spent = {}
    for i = 1, 2 do
      -- What others have spent and not told is within what they hold, and comes to the total when they tell it.
      total[i] = math.max(total[i] + own[i] - told[i], known[i] - others[i])
      spent[i] = math.max(total[i], known[i])
    end
    local function fits(hold)
      return spent[1] + others[1] + hold[1] <= limit[1] and spent[2] + others[2] + hold[2] <= limit[2]
    end
    local function hasPlaces(hold) return others[3] + hold[3] <= limit[3] end
    local room, isAlone = 'lacking', atWork[1] == 0 and others[1] == 0
    if spent[1] >= limit[1] or spent[2] >= limit[2] then room = 'none'
    elseif fits(reserve) and hasPlaces(reserve) then room = 'reserve'
    elseif isAlone or fits(next) then room = hasPlaces(next) and 'next' or 'busy' end
    return {room = room, total = total, spent = spent, own = own, holds = {reserve = reserve, next = next}, atWork = atWork}
  end
  local found, isGranted, answer = {}, true, {}
  for k, key in ipairs(KEYS) do
    local amounts = {}
    for i = 1, 7 do amounts[i] = numbers(ARGV[k * 9 - 7 + i]) end
    found[k] = look(key, ARGV[k * 9 - 7], unpack(amounts))
    isGranted = isGranted and found[k].holds[found[k].room] ~= nil
  end
  for k, key in ipairs(KEYS) do
    local each = found[k]
    if each.holds[each.room] and not isGranted then each.room = 'kept' end
    local hold, total, own = each.holds[each.room] or each.atWork, each.total, each.own
    redis.call('HSET', key, 'total', text(total[1], total[2]), ARGV[k * 9 - 7], text(own[1], own[2], hold[1], hold[2], hold[3], now + ARGV[1]))
    redis.call('PEXPIRE', key, ARGV[k * 9 + 1])
    answer[#answer + 1] = each.room
    answer[#answer + 1] = text(each.spent[1], each.spent[2])
  end
  return answer`,
}

const DAY_MS = 24 * 3_600_000
/** Longer than the period whose spending a hash counts. */
const keptMs = ({ name }: HoldRequest) => (isDay(name) ? 2 : 32) * DAY_MS

/** The holds of a cluster. */
export const createRedisHolds = (run: RedisLink['run']): BudgetHolds => ({
  async ask(tenant, requests) {
    const keys = requests.map(({ name }) => `budget:{${tenant}}:${name}`) // All keys of a tenant are in one slot.
    const answer = (await run(ASK, keys, [HOLD_MS, ...requests.flatMap(argumentsOf)])) as string[]
    return requests.map((_, i) => {
      const [tokens = 0, costUsd = 0] = String(answer[2 * i + 1])
        .trim()
        .split(' ')
        .map(Number)
      return { granted: answer[2 * i] as HoldAnswer['granted'], spent: { tokens, costUsd } }
    })
  },
})

function argumentsOf(request: HoldRequest): (string | number)[] {
  const { id, own, known, limit, hold } = request
  const amounts = [own.now, own.told, known, limit, hold.atWork, hold.next, hold.reserve]
  return [id, ...amounts.map(textOf), keptMs(request)]
}

/** Redis cannot read `Infinity`. */
const textOf = ({ tokens, costUsd, calls = 0 }: Spent & { calls?: number }): string =>
  [tokens, costUsd, calls].map((value) => Math.min(value, Number.MAX_VALUE)).join(' ')
