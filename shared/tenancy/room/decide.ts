import { beginTrial, type Health, NO_OUTCOMES, newHealth, stateOf, withOutcomes } from '../../agent/providers/health.ts'
import type { Amount, RoomAnswer, RoomRequest } from './port.ts'

/** One limit of a model: tokens, or requests. */
type Pool = {
  /** The limit of a minute: named by the provider, or guessed from its refusals (`guessedAt`). 0: unknown. */
  limit: number
  guessedAt: number
  /** The limit that was applied last, including the tenant's configuration. 0: none. */
  counted: number
  /** What may be sent at time `at`, and the smaller amount for paced calls. */
  room: number
  pace: number
  at: number
  /** The room is full again at this time, and does not grow before; 0: it grows continuously. */
  wholeAt: number
  /** What was given since the start, since `minute`, and in the minute before. */
  sent: number
  minute: number
  used: number
  usedBefore: number
}

type Member = { seen: number; places: number; waiting: number; weight: number; served: number }

/** All that is known of one model of an instance. Times are in milliseconds of one clock. */
export type Room = {
  pools: [Pool, Pool]
  closedUntil: number
  /** Whether the next call tests if the provider accepts calls again. */
  isProbe: boolean
  refused: number
  members: Record<string, Member>
  /** Left out by a process of an older release. */
  health?: Health
}

const MINUTE_MS = 60_000
/** Paced calls may use up to this part of a minute's limit at once. */
const BURST = 1 / 12
/** The part of a minute's limit that is kept for interactive calls. It shrinks in the last seconds of a minute at whose end the whole limit is available again. */
const KEPT = 0.03
/** How long the kept part shrinks at the end of a minute, after which the room is whole again. */
const SHRINKS_MS = 10_000
/** Calls larger than this part of a limit are sent without waiting, so that the provider decides. */
const MOST = 0.9
/** A process that has not asked for this long is no longer counted as waiting, and after the longer time its calls no longer count as running. */
const WAITS_MS = 3_000
const HOLD_MS = 30_000
/** A limit guessed from a refusal, of at least this many calls, grows by a tenth each minute, and is forgotten after ten. */
const GROWTH = 1.1
const GUESS_MS = 600_000
const EVIDENCE = 100
/** Waiting processes take turns. The amounts that they are given differ by at most the tokens of this time, divided by the weights of all. */
const TURN_MS = 1_000
const LOOK_MS = 50
const PLACE_MS = 250

const newPool = (now: number): Pool => ({
  ...{ limit: 0, guessedAt: 0, counted: 0, room: 0, pace: 0, at: now, wholeAt: 0 },
  ...{ sent: 0, minute: now, used: 0, usedBefore: 0 },
})

export const newRoom = (now: number): Room => ({
  pools: [newPool(now), newPool(now)],
  ...{ closedUntil: 0, isProbe: false, refused: 0, members: {} },
})

/** Updates the room with the request's facts, and decides what the process gets. `redis-rooms.ts` does the same in Lua. */
export function decide(room: Room, request: RoomRequest, now: number): RoomAnswer {
  const { told, refusedMs, spent, next, caps, atWork } = request
  room.pools.forEach((pool, at) => {
    refill(pool, caps.perMinute[at] ?? 0, now)
    take(pool, spent[at] ?? 0)
  })
  if (told) room.pools.forEach((pool, at) => tell(pool, { told, at, cap: caps.perMinute[at] ?? 0, now }))
  if (refusedMs !== undefined) refuse(room, now + refusedMs, now)
  const health = withOutcomes(room.health ?? newHealth(now), request.outcomes ?? NO_OUTCOMES, now)
  const isTrial = request.isTrial === true && stateOf(health, now) === 'half_open'
  room.health = isTrial ? beginTrial(health, now) : health
  const { member, others, places } = noteMember(room, request, now)
  const waiting = others.filter((each) => each.waiting > 0 && now - each.seen < WAITS_MS)
  const isAsked = next[1] > 0
  const retryMs = isAsked ? retryIn(room, request, { member, waiting, places, now }) : 0
  const isGranted = isAsked && retryMs === 0
  const share = member.weight / weightOf(member, waiting)
  const granted = room.pools.map((pool, at) => (isGranted ? give(pool, request, { at, share, now }) : 0))
  if (isGranted) {
    room.isProbe = false
    member.served += (granted[0] ?? 0) / Math.max(member.weight, 1)
    member.waiting = Math.max(0, member.waiting - (granted[1] ?? 0))
  }
  member.places = isAsked && !isGranted ? atWork - 1 : atWork
  return {
    granted: toAmount(granted),
    sent: toAmount(room.pools.map(({ sent }) => sent)),
    retryMs: Math.ceil(retryMs),
    closedMs: Math.max(0, room.closedUntil - now),
    othersWait: waiting.length > 0,
    limit: toAmount(room.pools.map(({ counted }) => counted || Number.POSITIVE_INFINITY)),
    used: toAmount(room.pools.map((pool) => Math.round(recent(pool, now)))),
    atWork: places + member.places,
    waiting: waiting.reduce((sum, each) => sum + each.waiting, member.waiting),
    refused: room.refused,
    ...{ health: room.health, now, isTrial },
  }
}

const toAmount = ([tokens = 0, requests = 0]: readonly number[]): Amount => [tokens, requests]

/** Updates the pool to the present time. */
function refill(pool: Pool, cap: number, now: number): void {
  const ms = Math.max(0, now - pool.at)
  pool.at = now
  const minutes = Math.floor((now - pool.minute) / MINUTE_MS)
  if (minutes > 0) {
    pool.usedBefore = minutes > 1 ? 0 : pool.used
    pool.used = 0
    pool.minute += minutes * MINUTE_MS
  }
  if (pool.guessedAt > 0 && now - pool.guessedAt > GUESS_MS) Object.assign(pool, { limit: 0, guessedAt: 0 })
  const before = pool.counted
  count(pool, cap, now)
  const { counted } = pool
  if (counted === 0) return
  if (before === 0) Object.assign(pool, { room: counted, pace: counted * BURST, wholeAt: 0 })
  pool.pace = Math.min(counted * BURST, pool.pace + pacePerMs(pool, now) * ms)
  if (pool.wholeAt === 0) pool.room = Math.min(counted, pool.room + (counted / MINUTE_MS) * ms)
  else if (now >= pool.wholeAt) Object.assign(pool, { room: counted, pace: Math.max(pool.pace, 1), wholeAt: 0 })
  pool.room = Math.min(counted, pool.room)
}

/** The limit that applies: the provider's, or the tenant's if that is smaller. `Infinity` for none. */
function count(pool: Pool, cap: number, now: number): void {
  const grown = pool.guessedAt > 0 ? pool.limit * GROWTH ** ((now - pool.guessedAt) / MINUTE_MS) : pool.limit
  const counted = Math.min(grown || Number.POSITIVE_INFINITY, cap)
  pool.counted = counted === Number.POSITIVE_INFINITY ? 0 : counted
}

/** If a minute's room comes back at once, it is spread over the rest of the minute. */
const pacePerMs = ({ counted, room, wholeAt }: Pool, now: number): number =>
  wholeAt === 0 ? counted / MINUTE_MS : Math.max(room, counted * KEPT) / Math.max(wholeAt - now, 1_000)

const recent = ({ minute, used, usedBefore }: Pool, now: number): number =>
  used + usedBefore * Math.max(0, 1 - (now - minute) / MINUTE_MS)

type Told = { told: NonNullable<RoomRequest['told']>; at: number; cap: number; now: number }

/**
 * Applies the limits in an answer: the provider has counted all earlier calls. A limit that is not full at the time at
 * which steady growth would fill it is a fixed window, of at most a minute.
 */
function tell(pool: Pool, { told, at, cap, now }: Told): void {
  const limit = told.limits[at]
  if (!limit) return
  const { left } = limit
  const perMs = limit.limit / MINUTE_MS
  const refillMs = (limit.limit - left) / perMs
  const resetMs = Math.min(limit.resetMs ?? 0, MINUTE_MS)
  const wholeAt = now + resetMs - told.ageMs
  const isSameEnd = pool.wholeAt > now && resetMs > 0 && Math.abs(wholeAt - pool.wholeAt) < 2_000
  const isSooner = resetMs > 0 && resetMs < refillMs / 2 - 1_000
  const isWindow = isSameEnd || isSooner || resetMs > 1.5 * refillMs + 1_000
  const since = pool.sent - (told.sent[at] ?? 0)
  const room = (isWindow ? left : Math.min(limit.limit, left + perMs * told.ageMs)) - since
  const isNew = pool.counted === 0
  Object.assign(pool, { limit: limit.limit, guessedAt: 0 })
  count(pool, cap, now)
  if (isNew) Object.assign(pool, { room, pace: pool.counted * BURST })
  const isCapped = pool.counted < limit.limit
  pool.room = isCapped ? Math.min(pool.room, room) : room
  if (!isCapped) pool.wholeAt = isWindow ? wholeAt : 0
}

/** Applies a refusal: if the provider names no limit, its limit is below what was sent in the last minute. */
function refuse(room: Room, until: number, now: number): void {
  const [tokens, requests] = room.pools
  room.closedUntil = Math.max(room.closedUntil, until)
  room.refused++
  room.isProbe = true
  for (const pool of room.pools) pool.pace = Math.min(pool.pace, 0)
  if (recent(requests, now) < EVIDENCE || (tokens.limit > 0 && tokens.guessedAt === 0)) return
  const limit = Math.min(recent(tokens, now), tokens.counted || Number.POSITIVE_INFINITY) * MOST
  Object.assign(tokens, { limit, guessedAt: now, counted: limit, room: 0, pace: 0, wholeAt: 0 })
}

/** Stores the latest figures of a process. A process that begins to wait starts with the amount of the least served waiting process. */
function noteMember(room: Room, { process, atWork, waiting, weight }: RoomRequest, now: number) {
  for (const [id, each] of Object.entries(room.members)) if (now - each.seen > HOLD_MS) delete room.members[id]
  const before = room.members[process]
  const others = Object.entries(room.members).flatMap(([id, each]) => (id === process ? [] : [each]))
  const served = others.filter((each) => each.waiting > 0).map((each) => each.served)
  const wasWaiting = before !== undefined && before.waiting > 0
  const own =
    wasWaiting || served.length === 0 ? (before?.served ?? 0) : Math.max(before?.served ?? 0, Math.min(...served))
  const member: Member = { seen: now, places: atWork, waiting, weight, served: own }
  room.members[process] = member
  return { member, others, places: others.reduce((sum, each) => sum + each.places, 0) }
}

type Asking = { member: Member; waiting: readonly Member[]; places: number; now: number }

/** After how long the process may ask again; 0: it gets what it asks for. */
function retryIn(room: Room, request: RoomRequest, { member, waiting, places, now }: Asking): number {
  const { next, caps, isFirst, atWork } = request
  if (room.closedUntil > now) return room.closedUntil - now
  if (places + atWork > caps.concurrent) return PLACE_MS
  if (room.isProbe) return 0
  const waits = room.pools.map((pool, at) => fitsIn(pool, { amount: next[at] ?? 0, isFirst, now }))
  const turn = ((room.pools[0].counted / MINUTE_MS) * TURN_MS) / weightOf(member, waiting)
  const isAhead = !isFirst && turn > 0 && waiting.some(({ served }) => served < member.served - turn)
  return Math.max(...waits, isAhead ? LOOK_MS : 0)
}

/** The sum of the weights of all waiting processes. */
const weightOf = ({ weight: own }: Member, waiting: readonly Member[]): number =>
  waiting.reduce((sum, { weight }) => sum + weight, Math.max(own, 1))

type Wanted = { amount: number; isFirst: boolean; now: number }

function fitsIn(pool: Pool, { amount, isFirst, now }: Wanted): number {
  const { counted, room, pace, wholeAt } = pool
  if (counted === 0) return 0
  const lacks = Math.min(amount, MOST * counted) + (isFirst ? 0 : keptOf(pool, now)) - room
  const later = wholeAt > 0 ? wholeAt - now : lacks / (counted / MINUTE_MS)
  const roomMs = lacks > 0 ? later : 0
  return Math.max(roomMs, isFirst || pace > 0 ? 0 : (1 - pace) / pacePerMs(pool, now))
}

const keptOf = ({ counted, wholeAt }: Pool, now: number): number =>
  KEPT * counted * (wholeAt === 0 ? 1 : Math.min(1, Math.max(0, wholeAt - now) / SHRINKS_MS))

type Giving = { at: number; share: number; now: number }

/** A call that fits gets at least its own amount, and a part of the rest for later calls. */
function give(pool: Pool, { next, want }: RoomRequest, { at, share, now }: Giving): number {
  const { counted, room, pace, wholeAt } = pool
  if (counted === 0) return next[at] ?? 0
  const spare = Math.min(pace * share, (room - keptOf(pool, now)) / 4)
  const given = Math.max(next[at] ?? 0, Math.floor(Math.min(want[at] ?? 0, spare)))
  if (wholeAt === 0 && (pool.limit === 0 || counted < pool.limit)) pool.wholeAt = now + MINUTE_MS
  take(pool, given)
  return given
}

function take(pool: Pool, amount: number): void {
  pool.sent += amount
  pool.used += amount
  if (pool.counted === 0) return
  pool.room -= amount
  pool.pace -= amount
}
