import type { TenantId } from '../../kernel/tenant.ts'
import type { Idempotency, KeyUse } from '../store/idempotency.ts'
import type { RedisLink, Script } from './link.ts'

/** Reserves a key, or returns the value that it already has. ARGV: the new value, how long it is kept (ms). */
const RESERVE: Script = {
  name: 'aeKeyReserve',
  keys: 1,
  lua: `local known = redis.call('GET', KEYS[1])
    if not known then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
    return known`,
}

/** ARGV: the end of the value that the key must have, and the text that replaces it; without the latter the key is freed. Returns the new value. */
const REPLACE: Script = {
  name: 'aeKeyReplace',
  keys: 1,
  lua: `local known = redis.call('GET', KEYS[1])
    if not known then return false end
    local hash, id = string.match(known, '^(%S+) (%S+)$')
    if id ~= ARGV[1] then return id end
    if ARGV[2] then redis.call('SET', KEYS[1], hash .. ' ' .. ARGV[2], 'KEEPTTL') return ARGV[2] end
    redis.call('DEL', KEYS[1])
    return false`,
}

const KEPT_MS = 86_400_000

/** The keys of a cluster's run starts in Redis: runs live in memory, so no store is needed. */
export function createRedisIdempotency({ run }: Pick<RedisLink, 'run'>): Idempotency {
  const nameOf = (tenant: TenantId, { operation, key }: KeyUse) => `idempotency:${tenant} ${operation} ${key}`
  return {
    async reserve(tenant, { hash, id, ...use }) {
      const known = (await run(RESERVE, [nameOf(tenant, use)], [`${hash} ${id}`, KEPT_MS])) as string | null
      const [knownHash, knownId = ''] = known?.split(' ') ?? [hash, id]
      if (knownHash !== hash) return { state: 'mismatch' }
      return knownId === id ? { state: 'reserved' } : { state: 'taken', id: knownId }
    },
    async replace(tenant, { from, to, ...use }) {
      return (await run(REPLACE, [nameOf(tenant, use)], [from, to])) === to
    },
    async release(tenant, { id, ...use }) {
      await run(REPLACE, [nameOf(tenant, use)], [id])
      return true
    },
  }
}
