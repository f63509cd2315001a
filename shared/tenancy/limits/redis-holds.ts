import type { RedisLink, Script } from '../../platform/redis/link.ts'
import { type BudgetHolds, HOLD_MS, type HoldAnswer, type Spent } from './port.ts'

/**
 * A hash for each tenant and day: `total` is what the processes have told, each other field a process with what it had spent when it asked last, what it
 * holds and until when, by Redis's clock. The decision is that of `decideHold`.
 */
const ASK: Script = {
  name: 'aeHoldBudget',
  keys: 1,
  lua: `local t = redis.call('TIME')
  local now = t[1] * 1000 + math.floor(t[2] / 1000)
  local function numbers(text)
    local found = {}
    for each in string.gmatch(text, '%S+') do found[#found + 1] = tonumber(each) end
    return found
  end
  local own, told, known, limit = numbers(ARGV[2]), numbers(ARGV[3]), numbers(ARGV[4]), numbers(ARGV[5])
  local atWork, next, reserve = numbers(ARGV[6]), numbers(ARGV[7]), numbers(ARGV[8])
  local total, others = {0, 0}, {0, 0}
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    local values = numbers(all[i + 1])
    if all[i] == 'total' then total = values
    elseif all[i] == ARGV[1] then told = values
    elseif values[5] <= now then redis.call('HDEL', KEYS[1], all[i])
    else others = {others[1] + values[3], others[2] + values[4]} end
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
  local isAlone = atWork[1] == 0 and others[1] == 0
  local granted, hold = 'atWork', atWork
  if spent[1] >= limit[1] or spent[2] >= limit[2] then granted = 'none'
  elseif fits(reserve) then granted, hold = 'reserve', reserve
  elseif isAlone or fits(next) then granted, hold = 'next', next end
  local function text(...) return string.format(string.rep('%.17g ', select('#', ...)), ...) end
  redis.call('HSET', KEYS[1], 'total', text(total[1], total[2]), ARGV[1], text(own[1], own[2], hold[1], hold[2], now + ARGV[9]))
  redis.call('PEXPIRE', KEYS[1], ARGV[10])
  return {granted, text(spent[1], spent[2])}`,
}

/** Longer than the day whose spending it counts. */
const KEPT_MS = 2 * 24 * 3_600_000

/** The holds of a cluster. */
export const createRedisHolds = (run: RedisLink['run']): BudgetHolds => ({
  async ask(tenant, { day, process, own, known, limit, hold }) {
    const amounts = [own.now, own.told, known, limit, hold.atWork, hold.next, hold.reserve].map(textOf)
    const answer = await run(ASK, [`budget:${tenant}:${day}`], [process, ...amounts, HOLD_MS, KEPT_MS])
    const [granted, spent] = answer as [HoldAnswer['granted'], string]
    const [tokens = 0, costUsd = 0] = spent.trim().split(' ').map(Number)
    return { granted, spent: { tokens, costUsd } }
  },
})

/** Redis reads no infinity. */
const textOf = ({ tokens, costUsd }: Spent): string =>
  [tokens, costUsd].map((value) => Math.min(value, Number.MAX_VALUE)).join(' ')
