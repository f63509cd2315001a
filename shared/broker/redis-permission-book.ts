import type { TenantId } from '../tenant.ts'
import type { PendingPermission, PermissionBook, PermissionDecision } from './port.ts'
import type { RedisLink, Script } from './redis-link.ts'

/** A day: what a process leaves behind that died before it could forget. */
const KEEP_SECS = 86_400

const OPEN: Script = {
  name: 'aeAsk',
  keys: 1,
  lua: `redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) redis.call('EXPIRE', KEYS[1], ARGV[3]) return 1`,
}

const DECIDE: Script = {
  name: 'aeDecide',
  keys: 1,
  lua: `local found = redis.call('HGET', KEYS[1], ARGV[1])
    if not found then return { 0, false } end
    local entry = cjson.decode(found)
    if entry.decided then return { 0, entry.decided.state } end
    entry.decided = cjson.decode(ARGV[2])
    redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(entry))
    redis.call('PUBLISH', entry.bell, ARGV[1])
    return { 1, entry.decided.state }`,
}

const LOOK: Script = { name: 'aeDecision', keys: 1, lua: `return redis.call('HGET', KEYS[1], ARGV[1])` }

const FORGET: Script = {
  name: 'aeForget',
  keys: 1,
  lua: `if ARGV[1] == '' then return redis.call('DEL', KEYS[1]) end
    local entries = redis.call('HGETALL', KEYS[1])
    for i = 1, #entries, 2 do
      if cjson.decode(entries[i + 1]).runId == ARGV[1] then redis.call('HDEL', KEYS[1], entries[i]) end
    end
    return 1`,
}

type Entry = { runId: string; bell: string; decided?: PermissionDecision }

/** Pub/sub is only the bell: whoever waits also looks (design §4.9). */
const LOOK_EVERY_MS = 500

/**
 * Permission requests in Redis, where every gateway decides by the same compare-and-set. A process that opens requests names
 * its own bell channel; one that only replies needs none.
 */
export async function createRedisPermissionBook(link: RedisLink, bell = ''): Promise<PermissionBook> {
  const waiting = new Map<string, () => void>()
  if (bell) await link.listen(bell, (id) => waiting.get(id.toString())?.())

  async function look(request: PendingPermission): Promise<PermissionDecision | undefined> {
    const found = await link.run(LOOK, [keyOf(request.tenant, request.scopeId)], [request.id])
    return typeof found === 'string' ? (JSON.parse(found) as Entry).decided : { state: 'withdrawn' }
  }

  return {
    async open(request) {
      const entry: Entry = { runId: request.runId, bell }
      await link.run(OPEN, [keyOf(request.tenant, request.scopeId)], [request.id, JSON.stringify(entry), KEEP_SECS])
    },
    async decide({ tenant, scopeId, id }, decision) {
      const answer = await link.run(DECIDE, [keyOf(tenant, scopeId)], [id, JSON.stringify(decision)])
      const [isWon, state] = answer as [number, PermissionDecision['state'] | null]
      return { isWon: isWon === 1, state: state ?? undefined }
    },
    async decision(request) {
      const { promise, resolve } = Promise.withResolvers<PermissionDecision>()
      const settle = (decided: PermissionDecision | undefined) => {
        if (decided) resolve(decided)
      }
      const check = () => {
        look(request).then(settle, () => {}) // Redis is away: it is looked at again.
      }
      const timer = setInterval(check, LOOK_EVERY_MS)
      waiting.set(request.id, check)
      check()
      return promise.finally(() => {
        clearInterval(timer)
        waiting.delete(request.id)
      })
    },
    async forget(tenant, scopeId, runId = '') {
      await link.run(FORGET, [keyOf(tenant, scopeId)], [runId])
    },
  }
}

/** Neither id holds a blank. */
const keyOf = (tenant: TenantId, scopeId: string): string => `ae:permissions:${tenant} ${scopeId}`
