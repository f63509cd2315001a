import type { LoadedSession } from '../../../shared/agent/sessions/load-session.ts'
import { grantNumbers, type StoredRuns } from '../../../shared/agent/sessions/open-runs.ts'
import { lifeOf, type SessionStore } from '../../../shared/agent/sessions/store.ts'
import type { SessionClaims } from '../../../shared/cluster/owners/held-claims.ts'
import { retryUntil } from '../../../shared/kernel/async/retry.ts'
import { AppError, tooMany } from '../../../shared/kernel/errors.ts'
import { newToken } from '../../../shared/kernel/ids.ts'
import type { Log } from '../../../shared/kernel/log.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { Session } from './session.ts'
import type { SessionState } from './session-state.ts'
import { noSession, type Sessions } from './sessions.ts'

export type StoredSessionsDeps = {
  store: SessionStore
  sessions: Sessions
  idleMs: number
  /** `undefined`: there is no other process, so every session belongs to this one. */
  claims: SessionClaims | undefined
  isDraining(): boolean
  /** How many event numbers are reserved for the current run. Left out: runs end with their worker. */
  reserved?: number | undefined
  /** Called for each session that was opened, before its first command, with the runs in its log. */
  onOpened(session: Session, runs: StoredRuns): Promise<void> | void
  log: Log
}

type Name = { tenant: TenantId; id: string }

/** For how long, and how often, undoing a refused creation is tried while the store is away. */
const TAKE_BACK_MS = 60_000
const TAKE_BACK_EVERY_MS = 1_000
/** Another owner that writes at the same time may take the next place once or twice; more failures have another cause. */
const MAX_TRIES = 5

/** The sessions of the store that this worker owns: it opens one when a command for it comes (D32). */
export class StoredSessions {
  readonly #deps: StoredSessionsDeps
  readonly #opening = new Map<string, Promise<Session>>()

  constructor(deps: StoredSessionsDeps) {
    this.#deps = deps
  }

  /**
   * Acts on the session, which is opened if it is not in memory: the caller's answer then also means that its runs can be found here. Throws
   * `not_found` when it is not stored, or another worker owns it.
   */
  act<T>(tenant: TenantId, id: string, action: () => T | Promise<T>): T | Promise<T> {
    const isOpen = !this.#opening.has(keyOf({ tenant, id })) && this.#deps.sessions.find(tenant, id) !== undefined
    return isOpen ? action() : this.#open({ tenant, id }).then(action)
  }

  /** Stores a session that was just created. Throws `conflict` when another one of the id is stored. */
  async add({ tenant, id, token, log }: Session): Promise<void> {
    if (!log) return
    const { store, claims } = this.#deps
    // An id is reserved only while no session of it is stored. If one is stored all the same, a creation without an answer has left it.
    const mayReplace = claims && (async () => (await claims.find({ tenant, id })) === token)
    if (await store.add(tenant, log.head, mayReplace)) return
    throw new AppError('conflict', `session ${id} exists already; choose another session_id, or send messages to it`)
  }

  /** Deletes the stored data of a session that is about to be removed here, unless another worker owns it by now. */
  async remove(session: Session): Promise<void> {
    const { tenant, id, token, log } = session
    if (!log) return
    const { store, claims } = this.#deps
    const isOwner = !claims || (await claims.find({ tenant, id })) === token
    if (!isOwner && (await store.ownerAt(tenant, log.head, log.nextSeq)) !== undefined) return
    await store.remove(tenant, log.head)
  }

  /** Deletes what a refused creation has stored, or may still store. Resolves when that is done, or given up. */
  async takeBack({ tenant, log }: Session): Promise<void> {
    if (!log) return
    const takeBack = () => this.#deps.store.takeBack(tenant, log.head, log.owner)
    const until = performance.now() + TAKE_BACK_MS
    // If all tries fail, the stored session expires by itself.
    await retryUntil(takeBack, { pauses: TAKE_BACK_EVERY_MS, until, ref: false }).catch(() => {})
  }

  #open(name: Name): Promise<Session> {
    const key = keyOf(name)
    const opening = this.#opening.get(key) ?? this.#claimAndLoad(name).finally(() => this.#opening.delete(key))
    this.#opening.set(key, opening)
    return opening
  }

  /**
   * Claims and loads the session. If this worker cannot open it the claim is released, so that the next request reaches
   * another worker or is answered with 404.
   */
  async #claimAndLoad(name: Name): Promise<Session> {
    const { claims } = this.#deps
    const token = claims ? await claims.find(name) : newToken()
    if (token === undefined) throw noSession(name.id)
    const held = { ...name, token }
    try {
      return await this.#load(held)
    } catch (cause) {
      if (isFinal(cause)) await claims?.release(held).catch(() => {}) // A claim that is not released expires by itself.
      throw cause
    }
  }

  async #load({ tenant, id, token }: Name & { token: string }): Promise<Session> {
    const { sessions, claims, isDraining, onOpened } = this.#deps
    if (isDraining()) throw drains()
    sessions.checkPlace(tenant)
    const owner = newToken()
    const loaded = await this.#takeOver(tenant, id, owner)
    if (claims && !(await claims.confirm({ tenant, id, token }))) throw noSession(id)
    if (isDraining()) throw drains()
    const known = sessions.find(tenant, id)
    if (known) return known
    const session = sessions.adopt(stateOf(loaded, { tenant, token, owner }))
    await onOpened(session, loaded.runs)
    this.#deps.log.info('a stored session was opened', { session_id: id })
    return session
  }

  /** Loads the session and takes the next place of its log: a former owner that is still alive then finds the place taken. */
  async #takeOver(tenant: TenantId, id: string, owner: string): Promise<LoadedSession> {
    const { store, idleMs, reserved = 0 } = this.#deps
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const loaded = await store.load(tenant, id)
      if (!loaded) throw noSession(id)
      const { head, nextSeq: seq, facts } = loaded
      const granted = reserved > 0 ? grantNumbers(loaded.runs, reserved) : { runs: loaded.runs }
      const runs = granted.entry && { runs: granted.entry }
      const entry = { at: new Date().toISOString(), facts, messages: [], ...runs }
      const place = { tenant, sessionId: id, workspace: head.workspace, seq, owner }
      const [added] = await store.append([{ ...place, entry, expiresMs: Date.now() + lifeOf(idleMs) }])
      if (added?.isOwn) return { ...loaded, runs: granted.runs, nextSeq: seq + added.places }
    }
    throw tooMany(`session ${id} is in use at another worker; try again`, 1)
  }
}

const keyOf = ({ tenant, id }: Name): string => `${tenant} ${id}`

type Ownership = { tenant: TenantId; token: string; owner: string }

function stateOf(loaded: LoadedSession, { tenant, token, owner }: Ownership): SessionState {
  const { head, messages, memories, clientTools, facts, runs, nextSeq, baseSeq, baseMs, headMs } = loaded
  const { title, message_count: messageCount, usage, model, remembered, from } = facts
  return {
    ...{ id: head.session_id, tenant, token, workspace: head.workspace, createdAt: head.created_at },
    ...{ messages, messageCount, memories, clientTools, remembered, used: { usage, model } },
    title: title ?? undefined,
    from,
    log: {
      ...{ head, nextSeq, baseSeq, baseMs, headMs, owner, remembers: remembered.length > 0 },
      endedFrom: runs.ended.map(({ fromSeq }) => fromSeq),
    },
  }
}

const drains = () =>
  new AppError('unavailable', 'this server is shutting down; send the request again', {
    retryAfterSecs: 1,
    code: 'worker_draining',
  })

/** Whether this worker will not open the session at the next request either. */
const isFinal = (cause: unknown): boolean =>
  cause instanceof AppError && (cause.kind === 'not_found' || cause.code === 'worker_draining')
