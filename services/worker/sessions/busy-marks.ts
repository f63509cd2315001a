import type { BusySessions } from '../../../shared/agent/sessions/busy-sessions.ts'
import type { EndedLog } from '../../../shared/agent/sessions/log.ts'
import type { SessionStore } from '../../../shared/agent/sessions/store.ts'
import type { HeldSession, SessionClaims } from '../../../shared/cluster/owners/held-claims.ts'
import { newToken } from '../../../shared/kernel/ids.ts'
import type { Session } from './session.ts'

export type BusyMarksDeps = {
  store: Pick<BusySessions, 'add' | 'delete'>
  logs: Pick<SessionStore, 'deleteLogs'>
  /** The claims on sessions, which another process may hold. */
  claims?: Pick<SessionClaims, 'release'> | undefined
  /** This process's name as an owner of sessions. */
  owner(): string
}

const SWEEP_EVERY_MS = 5_000
/** Longer than the eviction of a worker takes: a worker that is cut off from the others may end a run, and no gateway receives that end. */
const IDLE_MS = 15_000
const MAX_DELETED = 500

type Mark = { id: string; stored: Promise<void>; idleSince: number | undefined }
/** A one-shot run that has ended, and what to delete after `IDLE_MS`: its log, and, if another process had begun the run, its mark and its claim. */
type Ended = { log: EndedLog; mark?: string | undefined; claim?: HeldSession | undefined; endedAt: number }

/** Marks in the store which sessions of this worker have runs. A session that gets its next message soon keeps its mark. */
export class BusyMarks {
  readonly #deps: BusyMarksDeps
  readonly #marks = new Map<Session, Mark>()
  #timer: NodeJS.Timeout | undefined
  /** One-shot runs, in the order of their ends. */
  #ended: Ended[] = []
  /** Marks and logs that are to be deleted now. If the store fails to delete some, they stay for the next sweep. */
  #left: string[] = []
  #leftLogs: Pick<Ended, 'log' | 'claim'>[] = []

  constructor(deps: BusyMarksDeps) {
    this.#deps = deps
  }

  /** This process's name as an owner of sessions. */
  get owner(): string {
    return this.#deps.owner()
  }

  /** Resolves when the session is marked. Throws `unavailable`. */
  async add(session: Session): Promise<void> {
    const mark = this.#marks.get(session) ?? this.#insert(session)
    mark.idleSince = undefined
    await mark.stored
  }

  /**
   * The one-shot run of this session has ended. `isOpened`: another process had begun it, and this one opened its
   * session; it then has a mark and a claim.
   */
  end(session: Session, { isOpened }: { isOpened: boolean }): void {
    const { tenant, id, token, log } = session
    if (!log) return
    const mark = this.#marks.get(session)?.id
    this.#marks.delete(session)
    const { workspace } = log.head
    this.#ended.push({
      log: { tenant, workspace, last: log.nextSeq - 1 },
      ...(isOpened && { mark, claim: { tenant, id, token } }),
      endedAt: performance.now(),
    })
    this.#startSweeps()
  }

  /** Resolves when the marks of sessions without runs are deleted, or after a short time if the store does not answer. */
  async settled(): Promise<void> {
    await this.#sweep(0)
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #insert(session: Session): Mark {
    const id = newToken()
    const { tenant, id: session_id } = session
    const stored = this.#deps.store.add({ id, owner: this.owner, tenant, session_id })
    const mark: Mark = { id, stored, idleSince: undefined }
    this.#marks.set(session, mark)
    stored.catch(() => this.#marks.delete(session)) // The caller gets the error, too: it awaits `stored`.
    this.#startSweeps()
    return mark
  }

  #startSweeps(): void {
    this.#timer ??= setInterval(() => void this.#sweep(), SWEEP_EVERY_MS).unref()
  }

  async #sweep(idleMs = IDLE_MS): Promise<void> {
    const now = performance.now()
    for (const [session, mark] of this.#marks) {
      mark.idleSince = session.runs?.isEmpty === false ? undefined : (mark.idleSince ?? now)
      const isMoved = session.log?.end === 'moved' // Its new owner has its own mark; this one is deleted after this process has ended.
      const isOver = mark.idleSince !== undefined && now - mark.idleSince >= idleMs
      if (isMoved || isOver) this.#marks.delete(session)
      if (isOver && !isMoved) this.#left.push(mark.id)
    }
    const count = this.#ended.findIndex(({ endedAt }) => now - endedAt < idleMs)
    for (const ended of this.#ended.splice(0, count < 0 ? Infinity : count)) {
      if (ended.mark !== undefined) this.#left.push(ended.mark)
      this.#leftLogs.push(ended)
    }
    // Marks are deleted before logs: otherwise another process would look for a log that is gone.
    if (await deleteAll(this.#left, (ids) => this.#deps.store.delete(ids)))
      await deleteAll(this.#leftLogs, (ended) => this.#deleteLogs(ended))
  }

  /** Claims are released last: a stored session without a claim would be opened by another worker. */
  async #deleteLogs(ended: readonly Pick<Ended, 'log' | 'claim'>[]): Promise<void> {
    const { logs, claims } = this.#deps
    await logs.deleteLogs(ended.map(({ log }) => log))
    for (const { claim } of ended) if (claim) claims?.release(claim).catch(() => {}) // A claim that is not released expires by itself.
  }
}

/** Deletes the items and takes them off the list; what fails stays for the next sweep. Returns whether nothing is left. */
async function deleteAll<T>(left: T[], remove: (some: readonly T[]) => Promise<void>): Promise<boolean> {
  while (left.length > 0) {
    const some = left.splice(0, MAX_DELETED)
    try {
      await remove(some)
    } catch {
      left.push(...some)
      return false
    }
  }
  return true
}
