import { newToken } from '../../kernel/ids.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { RedisLink } from '../../platform/redis/link.ts'
import { type DecisionKeys, Decisions, type Entry } from './redis-decisions.ts'
import { DECIDE, FIND, FORGET, LIST, OPEN } from './redis-scripts.ts'
import {
  isReply,
  type ListedAsks,
  MAX_PAGE_BYTES,
  type PermissionDecision,
  type PermissionPage,
  type PermissionStore,
  type PermissionSummary,
  readPlace,
  waitMsOf,
  writePlace,
} from './store.ts'

/** Requests that a crashed process could not delete expire a day after they could be replied to. */
const KEEP_SECS = 86_400

/** Permission requests in Redis, for a gateway: it lists and decides them, and opens none. */
export const createRedisPermissionStore = (link: RedisLink): PermissionStore =>
  createStore(link, { channel: '', decisions: new Decisions(link, KEYS) })

/** Permission requests in Redis, for a worker: it subscribes to a channel of its own for the decisions. */
export async function openWorkerPermissionStore(link: RedisLink, pid: number): Promise<PermissionStore> {
  const name = `bell:${pid}:${Date.now().toString(36)}`
  const decisions = new Decisions(link, KEYS)
  await link.subscribeToScripts(name, (id) => decisions.onAnnounced(id.toString()))
  return createStore(link, { channel: link.prefix + name, decisions })
}

/** `channel`: where a worker is notified which of its requests was decided. */
type Own = { channel: string; decisions: Decisions }

function createStore(link: RedisLink, { channel, decisions }: Own): PermissionStore {
  return {
    async open(request) {
      const { tenant, scopeId, id, runId, details } = request
      const entry: Entry = { runId, bell: channel }
      const summary: PermissionSummary = { id, session_id: scopeId, run_id: runId, ...details }
      const waitMs = waitMsOf(request)
      const keepSecs = KEEP_SECS + Math.ceil(waitMs / 1000)
      const args = [id, JSON.stringify(entry), JSON.stringify(summary), waitMs, keepSecs]
      await link.run(OPEN, keysOf(tenant, scopeId), args)
    },
    async decide({ tenant, scopeId, id }, decision) {
      const args = [id, JSON.stringify(decision), newToken(), isReply(decision.state) ? 1 : 0]
      const answer = await link.run(DECIDE, keysOf(tenant, scopeId), args)
      const [isWon, state] = answer as [number, PermissionDecision['state'] | null]
      return { isWon: isWon === 1, state: state ?? undefined }
    },
    async find({ tenant, scopeId, id }) {
      const text = await link.run(FIND, [asksOf(tenant)], [id])
      const found = typeof text === 'string' ? (JSON.parse(text) as PermissionSummary) : undefined
      return scopeId === undefined || found?.session_id === scopeId ? found : undefined
    },
    decision: (request, signal) => decisions.of(request, signal),
    list: (tenant, page, isLive) => listPending(link, tenant, { ...page, isLive }),
    async forget(tenant, scopeId, runId = '') {
      await link.run(FORGET, keysOf(tenant, scopeId), [runId])
    },
  }
}

/** One step usually reads the whole page; more are needed only when dead workers have left many requests. */
const MIN_STEP = 50

type ListRequest = ListedAsks & { isLive: ((runId: string) => Promise<boolean>) | undefined }
type Step = [
  rows: [place: string, summary: string][],
  end: 'last' | 'more' | 'full',
  upTo: string | null,
  count: number,
]

async function listPending(
  link: RedisLink,
  tenant: TenantId,
  { limit, cursor, kind, isLive = async () => true }: ListRequest,
): Promise<PermissionPage> {
  const found: { place: string; summary: PermissionSummary }[] = []
  let from = cursor === undefined ? '-inf' : `(${readPlace(cursor)}`
  let isOver = false
  let hasMore = false
  let total = 0
  while (!isOver) {
    const args = [from, Math.max(MIN_STEP, limit + 1), MAX_PAGE_BYTES, kind === 'tool_call' ? 1 : 0]
    const [rows, end, upTo, count] = (await link.run(LIST, keysOf(tenant, ''), args)) as Step
    const read = rows.map(([place, text]) => ({ place, summary: JSON.parse(text) as PermissionSummary }))
    const runIds = [...new Set(read.map(({ summary }) => summary.run_id))]
    const lives = new Map(await Promise.all(runIds.map(async (runId) => [runId, await isLive(runId)] as const)))
    found.push(...read.filter(({ summary }) => lives.get(summary.run_id)))
    from = `(${upTo}`
    total = count
    hasMore = found.length > limit || (end === 'full' && found.length > 0)
    isOver = hasMore || end === 'last'
  }
  const page = found.slice(0, limit)
  const permissions = page.map(({ summary }) => summary)
  const last = page.at(-1)
  return last && hasMore
    ? { permissions, next_cursor: writePlace(Number(last.place)), total }
    : { permissions, next_cursor: null }
}

/** Neither id contains a space, so the key is unambiguous. The keys of a tenant are on one node of a Redis Cluster. */
const keyOf = (tenant: TenantId, scopeId: string): string => `permissions:{${tenant}} ${scopeId}`

const asksOf = (tenant: TenantId): string => `asks:{${tenant}}`

const keysOf = (tenant: TenantId, scopeId: string): string[] => [
  keyOf(tenant, scopeId),
  `pending:{${tenant}}`,
  asksOf(tenant),
]

const KEYS: DecisionKeys = { entries: keyOf, asks: asksOf }
