import type { BusySessions } from '../../../shared/agent/sessions/busy-sessions.ts'
import { newToken } from '../../../shared/kernel/ids.ts'
import type { Session } from './session.ts'

export type BusyMarksDeps = {
  store: Pick<BusySessions, 'add' | 'delete'>
  /** This process's name among the owners. */
  owner(): string
}

const SWEEP_EVERY_MS = 5_000
/** Longer than it takes until a worker is evicted: a worker that is cut off from the others may end a run, and no gateway gets that end. */
const IDLE_MS = 15_000
const MAX_DELETED = 500

type Mark = { id: string; stored: Promise<void>; idleSince: number | undefined }

/** Marks in the store which sessions of this worker have runs. A session that gets its next message soon keeps its mark. */
export class BusyMarks {
  readonly #deps: BusyMarksDeps
  readonly #marks = new Map<Session, Mark>()
  #timer: NodeJS.Timeout | undefined
  /** Documents that could not be deleted yet. */
  #left: string[] = []

  constructor(deps: BusyMarksDeps) {
    this.#deps = deps
  }

  /** Resolves when the session is marked. Throws `unavailable`. */
  async add(session: Session): Promise<void> {
    const mark = this.#marks.get(session) ?? this.#insert(session)
    mark.idleSince = undefined
    await mark.stored
  }

  /** Resolves when the marks of sessions without runs are deleted, or soon after when the store is away. */
  async settled(): Promise<void> {
    await this.#sweep(0)
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #insert(session: Session): Mark {
    const id = newToken()
    const { tenant, id: session_id } = session
    const stored = this.#deps.store.add({ id, owner: this.#deps.owner(), tenant, session_id })
    const mark: Mark = { id, stored, idleSince: undefined }
    this.#marks.set(session, mark)
    stored.catch(() => this.#marks.delete(session)) // The caller gets the error, too: it awaits `stored`.
    this.#timer ??= setInterval(() => void this.#sweep(), SWEEP_EVERY_MS).unref()
    return mark
  }

  async #sweep(idleMs = IDLE_MS): Promise<void> {
    const now = performance.now()
    for (const [session, mark] of this.#marks) {
      mark.idleSince = session.runs?.isEmpty === false ? undefined : (mark.idleSince ?? now)
      const isMoved = session.log?.end === 'moved' // Its new owner has a mark of its own; this one is deleted when this process has gone.
      const isOver = mark.idleSince !== undefined && now - mark.idleSince >= idleMs
      if (isMoved || isOver) this.#marks.delete(session)
      if (isOver && !isMoved) this.#left.push(mark.id)
    }
    while (this.#left.length > 0) {
      const ids = this.#left.splice(0, MAX_DELETED)
      try {
        await this.#deps.store.delete(ids)
      } catch {
        this.#left.push(...ids) // The next sweep deletes them.
        return
      }
    }
  }
}
