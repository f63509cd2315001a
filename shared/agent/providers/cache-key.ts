import { createHash } from 'node:crypto'
import { createCache } from '../../kernel/cache.ts'
import type { ModelRequest } from './port.ts'

/** OpenAI sends at most this many requests of one key in a minute to the machine that has their prefix in its cache. */
const PER_MINUTE = 15
const MOST_SHARDS = 64
const MINUTE_MS = 60_000
const MOST_PREFIXES = 1_000

/** How many requests with one prefix came in the current minute, and in the one before. */
type Rate = { minute: number; count: number; before: number }

const rates = createCache<string, Rate>(MOST_PREFIXES)

/**
 * A key for requests with the same prefix: OpenAI sends requests with equal keys to the machine that has their prefix in its cache.
 * Runs share the system prompt and the tools. Above the rate of one machine, conversations are divided among several keys. The key is a
 * hash, so it reveals no content.
 */
export function promptCacheKey({ system = '', tools, messages }: ModelRequest, now = Date.now()): string {
  const prefix = hashOf(`${system}\n${tools.map(({ name }) => name).join(',')}`).slice(0, 30)
  const shards = shardsFor(countOf(prefix, Math.floor(now / MINUTE_MS)))
  if (shards === 1) return `${prefix}00`
  const [first] = messages
  const conversation = Number.parseInt(hashOf(first?.role === 'user' ? first.text : '').slice(0, 8), 16)
  return prefix + (conversation % shards).toString(16).padStart(2, '0')
}

/** The number of requests a minute, including this one: that of the current minute, or of the one before if that is higher. */
function countOf(prefix: string, minute: number): number {
  const known = rates.get(prefix)
  const rate =
    known?.minute === minute ? known : { minute, count: 0, before: known?.minute === minute - 1 ? known.count : 0 }
  rate.count++
  rates.set(prefix, rate)
  return Math.max(rate.count, rate.before)
}

/** A power of two, so that half of the conversations keep their key when the number doubles. */
const shardsFor = (perMinute: number): number =>
  Math.min(MOST_SHARDS, 2 ** Math.max(0, Math.ceil(Math.log2(perMinute / PER_MINUTE))))

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')
