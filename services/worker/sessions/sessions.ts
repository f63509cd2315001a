import type { Message } from '../../../shared/agent/providers/port.ts'
import { isOneShotSession, logSessionOf, oneShotSessionOf } from '../../../shared/agent/sessions/one-shot.ts'
import { sessionFolder } from '../../../shared/agent/tools/workspace/workspace.ts'
import { SESSION_ID, sessionPosition } from '../../../shared/cluster/commands/pages.ts'
import type { SessionPage } from '../../../shared/cluster/commands/sessions.ts'
import { pageOf } from '../../../shared/cluster/list-page.ts'
import type { RememberedPermission } from '../../../shared/cluster/permissions/remembered-page.ts'
import type { PageRequest } from '../../../shared/kernel/cursor.ts'
import { conflict, notFound } from '../../../shared/kernel/errors.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { QueuedRun } from './message-queue.ts'
import { Session, type SessionOptions } from './session.ts'
import type { LogState } from './session-log.ts'
import { NO_PLACE, type RoomLimits, SessionRoom } from './session-room.ts'
import type { SessionIdentity, SessionState } from './session-state.ts'

/** The functions that store sessions, their runs and their folders. */
export type Keeping = Pick<SessionOptions, 'keep' | 'keepRuns' | 'onHeld'>

export type SessionsLimits = { room: RoomLimits; idleMs: number }

/** The sessions in this process's memory (api.md "What the service does" 6). */
export class Sessions {
  readonly #limits: SessionsLimits
  readonly #onRemoved: (session: Session) => Promise<boolean>
  readonly #keeping: Keeping | undefined
  readonly #room: SessionRoom
  readonly #sessions = new Map<string, Session>()
  /** The internal sessions of one-shot runs. Clients do not see them, and they count towards no limit. */
  readonly #oneShots = new Map<string, Session>()

  /**
   * Calls `onRemoved` for each session that was deleted or idle too long, after its last run has ended. `onRemoved` resolves with
   * `false` when another worker owns the session by now. With `keep` in `keeping` the sessions are stored.
   */
  constructor(limits: SessionsLimits, onRemoved: (session: Session) => Promise<boolean>, keeping?: Keeping) {
    this.#keeping = keeping
    this.#limits = limits
    this.#room = new SessionRoom(limits.room)
    this.#onRemoved = onRemoved
  }

  /**
   * Returns the session that was created with this token, if a repeated command creates it again. Throws `conflict` when the tenant has
   * another session of this id, `rate_limit` when there is no room.
   */
  create(identity: SessionIdentity, begin: Beginning = {}): Session {
    const existing = this.find(identity.tenant, identity.id)
    if (existing?.token === identity.token) return existing
    if (existing)
      throw conflict(`session ${identity.id} exists already; choose another session_id, or send messages to it`)
    this.checkPlace(identity.tenant)
    const workspace = sessionFolder(identity.id, identity.token)
    const { messages = [], title, from } = begin
    const state = newState({ ...identity, workspace, messages }, this.#keeping?.keep !== undefined)
    return this.adopt({ ...state, title, from })
  }

  /** Creates the session of a stored one-shot run, which this process (`busyAt`) owns. The conversation begins with `messages`. */
  createOneShot({ tenant, id: runId }: { tenant: TenantId; id: string }, { messages, busyAt }: NewOneShot): Session {
    const identity = { id: oneShotSessionOf(runId), tenant, token: runId, workspace: runId, messages }
    const { log, ...state } = newState(identity, true)
    return this.adopt({ ...state, title: NO_TITLE, log: log && { ...log, owner: runId, busyAt } })
  }

  /** Throws `rate_limit` when the tenant cannot have another session here. */
  checkPlace(tenant: TenantId): void {
    this.#room.checkSession(tenant)
  }

  /** Continues a session from its state. It replaces a session of the same id. */
  adopt(state: SessionState): Session {
    const { tenant, id } = state
    const earlier = this.find(tenant, id)
    if (earlier) this.release(earlier)
    const isOneShot = isOneShotSession(id)
    const session = new Session(state, {
      place: isOneShot ? NO_PLACE : this.#room.enter(tenant),
      idleMs: isOneShot ? undefined : this.#limits.idleMs, // The session of a one-shot run ends with its run.
      ...this.#keeping,
      onIdle: () => {
        this.remove(tenant, id).catch(() => {}) // Fails when another worker owns it; that worker removes it when it is idle there.
      },
    })
    this.#mapOf(id).set(keyOf(tenant, id), session)
    return session
  }

  /** Throws `rate_limit` when the session accepts no message now: its queue is full, or the tenant's conversations are too large. */
  checkRoom(session: Session): void {
    session.checkRoom()
    this.#room.checkMemory(session.tenant)
  }

  get count(): number {
    return this.#sessions.size
  }

  all(): Iterable<Session> {
    return this.#sessions.values()
  }

  get oneShots(): Iterable<Session> {
    return this.#oneShots.values()
  }

  /** Returns a page of the tenant's sessions, those created last first. Throws `invalid_request` for a cursor of another list. */
  page(tenant: TenantId, request: PageRequest): SessionPage {
    const own = [...this.#sessions.values()].filter((session) => session.tenant === tenant)
    const placeOf = ({ id, createdAt }: Session) => sessionPosition({ session_id: id, created_at: createdAt })
    const { page, next } = pageOf(own, placeOf, { ...request, idPattern: SESSION_ID })
    return { sessions: page.map(({ summary }) => summary), next_cursor: next }
  }

  /** The tools that the tenant has allowed for the rest of its sessions. */
  remembered(tenant: TenantId): RememberedPermission[] {
    const own = [...this.#sessions.values()].filter((session) => session.tenant === tenant)
    return own.flatMap(({ id, remembered }) => remembered.entries.map((tool) => ({ session_id: id, ...tool })))
  }

  /** Returns the number of tools that were forgotten. Throws `not_found` for an unknown session, and for a tool that is not remembered. */
  forgetRemembered(tenant: TenantId, sessionId: string, toolName?: string): number {
    const count = this.get(tenant, sessionId).remembered.forget(toolName)
    if (count > 0 || toolName === undefined) return count
    throw notFound('the session does not remember this tool: GET /permissions?state=remembered lists what it remembers')
  }

  /** Forgets a session that another worker owns now. Returns the messages that move with it; its other runs continue here. */
  release(session: Session): readonly QueuedRun[] {
    this.#forget(session)
    return session.retire()
  }

  /** Forgets the session of a one-shot run that has ended. */
  endOneShot(session: Session): void {
    this.#forget(session)
    void session.close('session_deleted')
  }

  /** Throws `not_found` for an unknown session and for another tenant's. */
  get(tenant: TenantId, sessionId: string): Session {
    const session = this.find(tenant, sessionId)
    if (!session) throw noSession(sessionId)
    return session
  }

  find(tenant: TenantId, sessionId: string): Session | undefined {
    return this.#mapOf(sessionId).get(keyOf(tenant, sessionId))
  }

  /** The session of a message's run, or the internal session of a stored one-shot run. */
  ofRun({
    tenant,
    id,
    sessionId,
  }: {
    tenant: TenantId
    id: string
    sessionId: string | undefined
  }): Session | undefined {
    return this.find(tenant, logSessionOf({ id, sessionId }))
  }

  /**
   * Forgets the session at once, and ends its runs with `session_deleted` (D4.7). Throws `not_found` like `get`, for a session with
   * another token, and when another worker owns the session.
   */
  async remove(tenant: TenantId, sessionId: string, token?: string): Promise<void> {
    const session = this.get(tenant, sessionId)
    if (token !== undefined && token !== session.token) throw noSession(sessionId)
    this.#forget(session)
    await session.close('session_deleted')
    if (!(await this.#onRemoved(session))) throw noSession(sessionId)
  }

  #mapOf(sessionId: string): Map<string, Session> {
    return isOneShotSession(sessionId) ? this.#oneShots : this.#sessions
  }

  #forget(session: Session): void {
    const [map, key] = [this.#mapOf(session.id), keyOf(session.tenant, session.id)]
    if (map.get(key) === session) map.delete(key)
  }
}

/** Clients never see the session of a one-shot run. */
const NO_TITLE = ''

/** The initial state of a session. */
type Beginning = { messages?: readonly Message[] } & Pick<SessionState, 'title' | 'from'>

type NewOneShot = { messages: readonly Message[]; busyAt: string }

type NewSession = SessionIdentity & { workspace: string; messages: readonly Message[] }

function newState(identity: NewSession, isStored: boolean): SessionState {
  const createdAt = new Date().toISOString()
  return { ...identity, createdAt, ...(isStored && { log: newLog(identity, createdAt) }) }
}

const newLog = ({ id, workspace }: NewSession, createdAt: string): LogState => ({
  head: { session_id: id, workspace, created_at: createdAt },
  nextSeq: 1,
  baseMs: Date.parse(createdAt),
  headMs: Date.parse(createdAt),
  remembers: false,
})

export const noSession = (sessionId: string) => notFound(`no session ${sessionId}: create it with POST /sessions`)

/** Unique, because no id contains a space. */
const keyOf = (tenant: TenantId, sessionId: string): string => `${tenant} ${sessionId}`
