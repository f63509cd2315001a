import { conflict, notFound, tooMany } from '../../shared/errors.ts'
import type { TenantId } from '../../shared/tenant.ts'
import { Session, type SessionIdentity, type SessionState } from './session.ts'

export type SessionsLimits = { maxSessions: number; idleMs: number }

const FULL_RETRY_SECS = 60

/** The sessions that live in this process's memory (api.md "What the service does" 6). */
export class Sessions {
  readonly #limits: SessionsLimits
  readonly #onRemoved: (session: Session) => void
  readonly #sessions = new Map<string, Session>()

  /** `onRemoved` is told of each session that is gone, with nothing of it running any more. */
  constructor(limits: SessionsLimits, onRemoved: (session: Session) => void) {
    this.#limits = limits
    this.#onRemoved = onRemoved
  }

  /** Throws `conflict` when the tenant has a session of this id, `rate_limit` when there is no room for another. */
  create(identity: SessionIdentity): Session {
    const key = keyOf(identity.tenant, identity.id)
    if (this.#sessions.has(key))
      throw conflict(`session ${identity.id} exists already; choose another session_id or go on with it`)
    if (this.#sessions.size >= this.#limits.maxSessions) {
      throw tooMany('this server has as many sessions as it takes; delete one, or try again later', FULL_RETRY_SECS)
    }
    return this.adopt({ ...identity, createdAt: new Date().toISOString(), messages: [] })
  }

  /** Takes a session as it is, in place of one of the same id. */
  adopt(state: SessionState): Session {
    const { tenant, id } = state
    const session = new Session(state, this.#limits.idleMs, () => void this.remove(tenant, id))
    this.#sessions.set(keyOf(tenant, id), session)
    return session
  }

  get count(): number {
    return this.#sessions.size
  }

  all(): Iterable<Session> {
    return this.#sessions.values()
  }

  /** Forgets one that another worker has now. */
  release({ tenant, id }: SessionIdentity): void {
    this.#sessions.get(keyOf(tenant, id))?.retire()
    this.#sessions.delete(keyOf(tenant, id))
  }

  /** Forgets all sessions without ending anything of them: another worker has them, or nobody. */
  releaseAll(): void {
    for (const session of this.#sessions.values()) session.retire()
    this.#sessions.clear()
  }

  /** Throws `not_found` for an unknown session and for another tenant's. */
  get(tenant: TenantId, sessionId: string): Session {
    const session = this.#sessions.get(keyOf(tenant, sessionId))
    if (!session) throw notFound(`no session ${sessionId}: create it with POST /sessions`)
    return session
  }

  /** Unknown from now on; what runs in it ends with `session_deleted` (D4.7). */
  async remove(tenant: TenantId, sessionId: string): Promise<void> {
    const session = this.get(tenant, sessionId)
    this.#sessions.delete(keyOf(tenant, sessionId))
    await session.close('session_deleted')
    this.#onRemoved(session)
  }
}

/** No id holds a blank, so no two pairs share a key. */
const keyOf = (tenant: TenantId, sessionId: string): string => `${tenant} ${sessionId}`
