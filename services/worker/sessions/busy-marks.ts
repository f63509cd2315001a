import type { BusySessions } from '../../../shared/agent/sessions/busy-sessions.ts'
import { newToken } from '../../../shared/kernel/ids.ts'
import type { Session } from './session.ts'

export type BusyMarksDeps = {
  store: Pick<BusySessions, 'add' | 'delete'>
  /** This process's name among the owners. */
  owner(): string
}

const SWEEP_EVERY_MS = 2_000
const MAX_DELETED = 500

type Mark = { id: string; stored: Promise<void>; wasIdle: boolean }

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
    mark.wasIdle = false
    await mark.stored
  }

  /** Resolves when the marks of sessions without runs are deleted, or soon after when the store is away. */
  async settled(): Promise<void> {
    for (const mark of this.#marks.values()) mark.wasIdle = true
    await this.#sweep()
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #insert(session: Session): Mark {
    const id = newToken()
    const { tenant, id: session_id } = session
    const stored = this.#deps.store.add({ id, owner: this.#deps.owner(), tenant, session_id })
    const mark = { id, stored, wasIdle: false }
    this.#marks.set(session, mark)
    stored.catch(() => this.#marks.delete(session)) // The caller is told.
    this.#timer ??= setInterval(() => void this.#sweep(), SWEEP_EVERY_MS).unref()
    return mark
  }

  async #sweep(): Promise<void> {
    for (const [session, mark] of this.#marks) {
      const isMoved = session.log?.end === 'moved' // Whoever goes on with it deletes the mark.
      const isIdle = session.runs?.isEmpty !== false
      if (isMoved || (isIdle && mark.wasIdle)) this.#marks.delete(session)
      if (!isMoved && isIdle && mark.wasIdle) this.#left.push(mark.id)
      mark.wasIdle = isIdle
    }
    const ids = this.#left.splice(0, MAX_DELETED)
    if (ids.length === 0) return
    await this.#deps.store.delete(ids).catch(() => this.#left.push(...ids)) // With the next ones.
  }
}
