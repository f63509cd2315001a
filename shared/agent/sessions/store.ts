import type { PageRequest } from '../../kernel/cursor.ts'
import { AppError } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import type { Collection, CollectionSpec, PageQuery, Store, Stored } from '../../platform/store/port.ts'
import { type LoadedSession, type RenewedHead, readSession, type SessionHead } from './load-session.ts'
import { type Appended, type EndedLog, SessionLogs } from './log.ts'
import { type LogEntry, type LogWrite, NO_FACTS } from './log-documents.ts'
import { isOneShotSession, runOfOneShot } from './one-shot.ts'
import { markRefused, refusalOf } from './refused-log.ts'

/**
 * The heads of a tenant's stored sessions; their logs hold the rest. `remembers` is `yes` once the session has remembered a tool, so that these
 * few sessions can be found.
 */
export const SESSIONS: CollectionSpec = {
  name: 'sessions',
  key: ['session_id'],
  order: { within: [], by: ['created_at', 'session_id'], direction: 'descending' },
  filters: ['remembers'],
  expiresBy: 'expires_ms',
}

export type StoredSummary = ApiType<'SessionInfoResponse'>

/** Where a page of sessions begins: after the session with this creation time and id. */
export type SessionPosition = readonly [createdAt: string, id: string]
export type StoredPage = { sessions: StoredSummary[]; next: SessionPosition | undefined }
type PageStart = Pick<PageRequest, 'limit'> & { after?: SessionPosition | undefined; remembers?: boolean }

/**
 * Sessions that outlive their worker (D32). A session that was not used for SESSION_IDLE_SECS is not found any more. Every method throws
 * `unavailable` when the store does not answer.
 */
export interface SessionStore {
  /**
   * Stores a new session. Returns `false` when another session with the id is stored, unless `mayReplace` allows to replace it or it was idle for
   * too long.
   */
  add(tenant: TenantId, head: SessionHead, mayReplace?: () => Promise<boolean>): Promise<boolean>
  /** Extends the session's life, and notes whether it remembers tools. */
  renew(tenant: TenantId, head: SessionHead, remembers: boolean): Promise<void>
  find(tenant: TenantId, sessionId: string): Promise<StoredSummary | undefined>
  /**
   * Whether a stored session exists that no worker has. Throws `unavailable` also for a session that was created a moment ago and has no entry: its
   * creation may have been refused, and its data is then about to be deleted (D36.4).
   */
  isLeft(tenant: TenantId, sessionId: string): Promise<boolean>
  load(tenant: TenantId, sessionId: string): Promise<LoadedSession | undefined>
  /** A page of sessions, the latest created first. */
  page(tenant: TenantId, start: PageStart): Promise<StoredPage>
  /** Adds entries to logs, with one command for all of them. Returns the outcome of each. May be repeated. */
  append(writes: readonly LogWrite[]): Promise<Appended[]>
  /** Returns the owner that has taken this place of a log. */
  ownerAt(tenant: TenantId, name: StoredName, seq: number): Promise<string | undefined>
  /** Deletes this session and its log. A later session of the same id stays. */
  remove(tenant: TenantId, head: StoredName): Promise<void>
  /**
   * Deletes the data of a refused creation by the owner `creator`, including writes that the store may still carry out. Has no effect when
   * another owner has continued the session. May be repeated.
   */
  takeBack(tenant: TenantId, head: StoredName, creator: string): Promise<void>
  /** Deletes the logs of one-shot runs that have ended. */
  deleteLogs(logs: readonly EndedLog[]): Promise<void>
}

/** `resumeMs`: how long clients may ask for a run that has ended. */
export type SessionStoreOptions = { idleMs: number; resumeMs: number; now?: () => number }

const HOUR_MS = 3_600_000
/** Longer than a creation and the first attempt to undo it take. Other workers notice a worker's death later than this. */
const UNDECIDED_MS = 5_000

/** How long a document is stored, and when its owner writes entries that are still valid again: an hour before they could be missed. */
export const lifeOf = (idleMs: number): number => 2 * idleMs + 2 * HOUR_MS
export const renewalOf = (idleMs: number): number => idleMs + HOUR_MS

type HeadDocument = RenewedHead & { remembers: 'yes' | 'no'; expires_ms: number }

/** Losing the race for a head more often than this means that the cause is not a race. */
const MAX_TRIES = 5

export function createSessionStore(store: Store, options: SessionStoreOptions): SessionStore {
  const { idleMs, resumeMs, now = Date.now } = options
  const heads = store.collection(SESSIONS)
  const logs = new SessionLogs(store)
  const isIdle = (usedAt: string) => Date.parse(usedAt) + idleMs <= now()
  const { look, show } = looks(logs, isIdle)
  const times = () => ({ nowMs: now(), expiresMs: now() + lifeOf(idleMs) })
  const documentOf = (head: SessionHead, remembers = false) => documentAt(times(), head, remembers)
  const findHead = async (tenant: TenantId, id: string): Promise<HeadDocument | undefined> =>
    isOneShotSession(id) ? documentOf(headOfOneShot(id)) : docOf(await heads.get(tenant, { session_id: id }))
  return {
    add: (tenant, head, mayReplace = async () => false) =>
      add({ heads, logs }, tenant, {
        doc: documentOf(head),
        isReplaced: async (other) => (await mayReplace()) || (await show(tenant, other)) === undefined,
      }),
    renew: (tenant, head, remembers) => renew(heads, tenant, documentOf(head, remembers)),
    async find(tenant, sessionId) {
      const found = await findHead(tenant, sessionId)
      return found && show(tenant, headFrom(found))
    },
    async isLeft(tenant, sessionId) {
      const doc = await findHead(tenant, sessionId)
      const found = doc && (await look(tenant, headFrom(doc)))
      if (found && !found.last && now() - Date.parse(found.head.created_at) < UNDECIDED_MS) throw undecided(sessionId)
      return found !== undefined
    },
    async load(tenant, sessionId) {
      const found = await findHead(tenant, sessionId)
      const loaded = found && (await readSession(logs, tenant, { head: found, recentMs: now() - resumeMs }))
      return loaded && !isIdle(loaded.usedAt) ? loaded : undefined
    },
    page: (tenant, start) => readPage(heads, tenant, { ...start, show: (head) => show(tenant, head) }),
    append: (writes) => logs.append(writes),
    ownerAt: (tenant, name, seq) => logs.ownerAt({ tenant, ...name }, seq),
    ...removal({ heads, logs }, times),
    deleteLogs: (ended) => logs.deleteEnded(ended),
  }
}

type Times = { nowMs: number; expiresMs: number }

const documentAt = ({ nowMs, expiresMs }: Times, head: SessionHead, remembers: boolean): HeadDocument => ({
  ...head,
  remembers: remembers ? 'yes' : 'no',
  renewed_ms: nowMs,
  expires_ms: expiresMs,
})

/** `undefined`: the session has been idle too long, or its creation was refused. */
function looks(logs: SessionLogs, isIdle: (usedAt: string) => boolean) {
  const look = async (tenant: TenantId, head: SessionHead) => {
    const last = await logs.last({ tenant, ...head })
    return last?.isRefused || isIdle(last?.at ?? head.created_at) ? undefined : { head, last }
  }
  const show = async (tenant: TenantId, head: SessionHead): Promise<StoredSummary | undefined> => {
    const found = await look(tenant, head)
    return found && summaryFrom(found.head, found.last)
  }
  return { look, show }
}

const undecided = (id: string) =>
  new AppError('unavailable', `it is not known yet whether session ${id} was created; try again`, { retryAfterSecs: 1 })

const removal = ({ heads, logs }: Collections, times: () => Times): Pick<SessionStore, 'remove' | 'takeBack'> => ({
  async remove(tenant, { session_id, workspace }) {
    await removeHead(heads, tenant, { session_id, workspace })
    await logs.delete({ tenant, workspace })
  },
  async takeBack(tenant, { session_id, workspace }, creator) {
    const mark = refusalOf({ tenant, sessionId: session_id, workspace }, creator, times())
    if (await markRefused(logs, mark, creator)) await removeHead(heads, tenant, { session_id, workspace })
  },
})

type Collections = { heads: Collection; logs: SessionLogs }
type StoredName = Pick<SessionHead, 'session_id' | 'workspace'>
type Adding = { doc: HeadDocument; isReplaced(other: SessionHead): Promise<boolean> }

async function add({ heads, logs }: Collections, tenant: TenantId, { doc, isReplaced }: Adding): Promise<boolean> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    if (await heads.insert(tenant, doc)) return true
    const found = await heads.get(tenant, { session_id: doc.session_id })
    if (!found) continue // The head was deleted in between.
    const other = headOf(found)
    if (other.workspace === doc.workspace) return true // An earlier attempt, whose answer did not come, has stored it.
    if (!(await isReplaced(other))) return false
    if (!(await heads.replaceIfVersion(tenant, { doc, version: found.version }))) continue
    await logs.delete({ tenant, workspace: other.workspace })
    return true
  }
  return false
}

/** Deletes the session's head. The head of a later session with the same id stays. */
async function removeHead(heads: Collection, tenant: TenantId, { session_id, workspace }: StoredName): Promise<void> {
  const found = await heads.get(tenant, { session_id })
  if (found && headOf(found).workspace === workspace) await heads.delete(tenant, { session_id }, found.version)
}

async function renew(heads: Collection, tenant: TenantId, doc: HeadDocument): Promise<void> {
  const found = await heads.get(tenant, { session_id: doc.session_id })
  if (!found || headOf(found).workspace !== doc.workspace) return
  await heads.replaceIfVersion(tenant, { doc, version: found.version })
}

const docOf = (found: Stored | undefined) => found?.doc as HeadDocument | undefined

const headOf = ({ doc }: Stored): SessionHead => headFrom(doc as HeadDocument)

const headFrom = ({ session_id, workspace, created_at }: HeadDocument): SessionHead => ({
  session_id,
  workspace,
  created_at,
})

/** A one-shot run has no head: without an entry in its log it is not stored. Its folder has its name. */
const headOfOneShot = (id: string): SessionHead => ({
  session_id: id,
  workspace: runOfOneShot(id),
  created_at: new Date(0).toISOString(),
})

function summaryFrom({ session_id, created_at }: SessionHead, entry: LogEntry | undefined): StoredSummary {
  const { message_count, title, last_message_at, ...rest } = entry?.facts ?? NO_FACTS
  const history = { message_count, title, last_message_at }
  return { session_id, created_at, ...history, active_run_id: null, queued: 0, ...rest }
}

type PageReading = PageStart & { show(head: SessionHead): Promise<StoredSummary | undefined> }

/** Reads further sessions while the page is too short because some were idle for too long. */
async function readPage(heads: Collection, tenant: TenantId, reading: PageReading): Promise<StoredPage> {
  const { limit, remembers, show } = reading
  const query: PageQuery = { ...(remembers && { where: { remembers: 'yes' } }), limit: limit + 1 }
  const sessions: StoredSummary[] = []
  let { after } = reading
  while (sessions.length < limit) {
    const found = await heads.page(tenant, { ...query, after })
    for (const stored of found) {
      if (sessions.length === limit) return { sessions, next: after }
      const head = headOf(stored)
      const summary = await show(head)
      if (summary) sessions.push(summary)
      after = [head.created_at, head.session_id]
    }
    if (found.length <= limit) return { sessions, next: undefined }
  }
  return { sessions, next: after }
}
