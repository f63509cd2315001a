import { withDeadline } from '../../kernel/async/deadline.ts'
import type { Log } from '../../kernel/log.ts'
import type { RedisLink, Script } from '../../platform/redis/link.ts'
import type { RateLimiter, Taken } from './port.ts'
import { takenOf, WINDOW_MS } from './window.ts'

export type RedisRateLimiterDeps = {
  run: RedisLink['run']
  perMinute: number
  /** Counts while Redis does not answer. */
  fallback: RateLimiter
  log: Log
  windowMs?: number
}

/**
 * Keeps a list of the times of a client's counted requests, oldest first, by Redis's clock. Expired times are removed, the rest
 * is counted.
 */
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

/** How long a request waits for Redis. */
const ANSWER_MS = 250
/** How long Redis is not asked after a failure. */
const PAUSE_MS = 1_000

/**
 * Counts across all gateways, with an exact sliding window in Redis. Requests must be served while Redis is away, so each process
 * then counts with its own `fallback`, starting from zero, until Redis answers again.
 */
export class RedisRateLimiter implements RateLimiter {
  readonly #deps: RedisRateLimiterDeps
  #retryAt = Number.NEGATIVE_INFINITY
  #isAway = false

  constructor(deps: RedisRateLimiterDeps) {
    this.#deps = deps
  }

  async take(key: string, limit = this.#deps.perMinute): Promise<Taken> {
    const { fallback, log } = this.#deps
    if (performance.now() < this.#retryAt) return fallback.take(key, limit)
    try {
      return await this.#ask(key, limit)
    } catch (cause) {
      this.#retryAt = performance.now() + PAUSE_MS
      if (!this.#isAway)
        log.warn('Redis does not answer: each gateway counts the rate limit for itself until it does', { cause })
      this.#isAway = true
      return fallback.take(key, limit)
    }
  }

  async #ask(key: string, limit: number): Promise<Taken> {
    const { run, log, windowMs = WINDOW_MS } = this.#deps
    const answer = await withDeadline(run(TAKE, [`rate:${key}`], [limit, windowMs]), ANSWER_MS, noAnswer)
    const [isAllowed, count, oldestMs] = answer as [number, number, number]
    if (this.#isAway) log.info('Redis answers again: the rate limit is counted across gateways')
    this.#isAway = false
    return takenOf({ isAllowed: isAllowed === 1, limit, count, oldestMs, windowMs })
  }
}

const noAnswer = () => new Error(`no answer within ${ANSWER_MS} ms`)
