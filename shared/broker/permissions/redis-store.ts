import type { TenantId } from '../../tenant.ts'
import type {
  PageRequest,
  PermissionDecision,
  PermissionKey,
  PermissionPage,
  PermissionStore,
  PermissionSummary,
} from '../port.ts'
import type { RedisLink } from '../redis-link.ts'
import { MAX_PAGE_BYTES, readPlace, writePlace } from './page.ts'
import { DECIDE, FORGET, LIST, LOOK, OPEN } from './redis-scripts.ts'

/** A day longer than a request may wait: what a process leaves behind that died before it could forget. */
const KEEP_SECS = 86_400

type Entry = { runId: string; bell: string; decided?: PermissionDecision }

/** Pub/sub is only the bell: whoever waits also looks (design §4.9). */
const LOOK_EVERY_MS = 500

/**
 * Permission requests in Redis, where every gateway decides by the same compare-and-set. A process that opens requests names
 * its own bell channel; one that only replies needs none.
 */
export async function createRedisPermissionStore(link: RedisLink, bell = ''): Promise<PermissionStore> {
  const waiting = new Map<string, () => void>()
  if (bell) await link.listen(bell, (id) => waiting.get(id.toString())?.())

  return {
    async open({ tenant, scopeId, id, runId, details }) {
      const entry: Entry = { runId, bell }
      const summary: PermissionSummary = { id, session_id: scopeId, run_id: runId, ...details }
      const waitsMs = Date.parse(details.expires_at) - Date.parse(details.created_at)
      const keepSecs = KEEP_SECS + Math.ceil(waitsMs / 1000)
      const args = [id, JSON.stringify(entry), JSON.stringify(summary), waitsMs, keepSecs]
      await link.run(OPEN, keysOf(tenant, scopeId), args)
    },
    async decide({ tenant, scopeId, id }, decision) {
      const answer = await link.run(DECIDE, keysOf(tenant, scopeId), [id, JSON.stringify(decision)])
      const [isWon, state] = answer as [number, PermissionDecision['state'] | null]
      return { isWon: isWon === 1, state: state ?? undefined }
    },
    decision: (request) => awaitDecision(link, request, waiting),
    list: (tenant, page, isLive) => listPending(link, tenant, { ...page, isLive }),
    async forget(tenant, scopeId, runId = '') {
      await link.run(FORGET, keysOf(tenant, scopeId), [runId])
    },
  }
}

/** `waiting` holds whom the bell wakes, by the request's id. */
async function awaitDecision(
  link: RedisLink,
  { tenant, scopeId, id }: PermissionKey,
  waiting: Map<string, () => void>,
): Promise<PermissionDecision> {
  const { promise, resolve } = Promise.withResolvers<PermissionDecision>()
  const check = async () => {
    const found = await link.run(LOOK, [keyOf(tenant, scopeId)], [id])
    const decided = typeof found === 'string' ? (JSON.parse(found) as Entry).decided : WITHDRAWN
    if (decided) resolve(decided)
  }
  const look = () => {
    check().catch(() => {}) // Redis is away: it is looked at again.
  }
  const timer = setInterval(look, LOOK_EVERY_MS)
  waiting.set(id, look)
  look()
  return promise.finally(() => {
    clearInterval(timer)
    waiting.delete(id)
  })
}

const WITHDRAWN = { state: 'withdrawn' } as const

/** Most steps bring all that is wanted; more are needed only where dead workers have left many requests. */
const MIN_STEP = 50

type ListRequest = PageRequest & { isLive: ((runId: string) => boolean) | undefined }
type Step = [rows: [place: string, summary: string][], end: 'last' | 'more' | 'full', upTo: string | null]

async function listPending(
  link: RedisLink,
  tenant: TenantId,
  { limit, cursor, isLive = () => true }: ListRequest,
): Promise<PermissionPage> {
  const found: { place: string; summary: PermissionSummary }[] = []
  let from = cursor === undefined ? '-inf' : `(${readPlace(cursor)}`
  let isOver = false
  let hasMore = false
  while (!isOver) {
    const args = [from, Math.max(MIN_STEP, limit + 1), MAX_PAGE_BYTES]
    const [rows, end, upTo] = (await link.run(LIST, keysOf(tenant, ''), args)) as Step
    for (const [place, text] of rows) {
      const summary = JSON.parse(text) as PermissionSummary
      if (isLive(summary.run_id)) found.push({ place, summary })
    }
    from = `(${upTo}`
    hasMore = found.length > limit || (end === 'full' && found.length > 0)
    isOver = hasMore || end === 'last'
  }
  const page = found.slice(0, limit)
  const last = page.at(-1)
  return {
    permissions: page.map(({ summary }) => summary),
    next_cursor: last && hasMore ? writePlace(last.place) : null,
  }
}

/** Neither id holds a blank. */
const keyOf = (tenant: TenantId, scopeId: string): string => `ae:permissions:${tenant} ${scopeId}`

const keysOf = (tenant: TenantId, scopeId: string): string[] => [
  keyOf(tenant, scopeId),
  `ae:pending:${tenant}`,
  `ae:asks:${tenant}`,
]
