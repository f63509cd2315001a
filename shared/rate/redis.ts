import type { Log } from '../log.ts'
import type { RateLimiter, Taken } from './port.ts'
import { takenOf, WINDOW_MS } from './window.ts'

type Script = { name: string; keys: number; lua: string }

export type RedisRateLimiterDeps = {
  /** Runs a script in Redis as one step; `run` of broker/redis-link is one. */
  run: (script: Script, keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>
  perMinute: number
  /** Counts while Redis does not answer. */
  standIn: RateLimiter
  log: Log
  windowMs?: number
}

/** The times of a client's counted requests, oldest first, by Redis's clock: what has left the window goes, the rest is counted. */
const TAKE: Script = {
  name: 'aeTake',
  keys: 1,
  lua: `local t = redis.call('TIME')
    local now = t[1] * 1000 + math.floor(t[2] / 1000)
    local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
    local oldest = tonumber(redis.call('LINDEX', KEYS[1], 0) or now)
    while oldest <= now - window do
      redis.call('LPOP', KEYS[1])
      oldest = tonumber(redis.call('LINDEX', KEYS[1], 0) or now)
    end
    local count = redis.call('LLEN', KEYS[1])
    if count >= limit then return { 0, count, math.max(0, now - oldest) } end
    redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
    redis.call('PEXPIRE', KEYS[1], window)
    return { 1, count + 1, math.max(0, now - oldest) }`,
}

/** A request waits no longer for its count, and after a failure Redis is left alone for so long. */
const ANSWER_MS = 250
const REST_MS = 1_000

/**
 * The exact sliding window across gateways. A limiter that is away must not take the API with it: then each process counts for
 * itself, from zero, until Redis answers again.
 */
export function createRedisRateLimiter(deps: RedisRateLimiterDeps): RateLimiter {
  const { run, perMinute, standIn, log, windowMs = WINDOW_MS } = deps
  let retryAt = Number.NEGATIVE_INFINITY
  let isAway = false

  async function ask(key: string): Promise<Taken> {
    const answer = await inTime(run(TAKE, [`ae:rate:${key}`], [perMinute, windowMs]))
    const [isAllowed, count, oldestMs] = answer as [number, number, number]
    if (isAway) log.info('the rate limit is counted across gateways again')
    isAway = false
    return takenOf({ isAllowed: isAllowed === 1, limit: perMinute, count, oldestMs, windowMs })
  }

  return {
    async take(key) {
      if (performance.now() < retryAt) return standIn.take(key)
      try {
        return await ask(key)
      } catch (cause) {
        retryAt = performance.now() + REST_MS
        if (!isAway)
          log.warn('Redis does not answer: until it does, each gateway counts the rate limit for itself', { cause })
        isAway = true
        return standIn.take(key)
      }
    },
  }
}

async function inTime(answer: Promise<unknown>): Promise<unknown> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`no answer within ${ANSWER_MS} ms`)), ANSWER_MS)
  try {
    return await Promise.race([answer, promise])
  } finally {
    clearTimeout(timer)
  }
}
