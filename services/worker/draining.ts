import type { Runs } from '../../shared/work/runs/runs.ts'
import type { Session } from './sessions/session.ts'
import type { Sessions } from './sessions/sessions.ts'

type State = 'serving' | 'draining' | 'overdue'

/**
 * The end of a worker's life, in which it takes no new work.
 *
 * | State    | Runs that are here                                            | Event            | Next state |
 * |----------|---------------------------------------------------------------|------------------|------------|
 * | serving  | go on, and new ones come                                      | `begin`          | draining   |
 * | draining | go on, and so do the messages of a session that stays (`keep`) | its time is over | overdue    |
 * | overdue  | end with `worker_draining`, or wait for another worker        |                  |            |
 */
export class Draining {
  readonly #runs: Pick<Runs, 'endAll'>
  readonly #sessions: Pick<Sessions, 'all' | 'find'>
  #state: State = 'serving'
  /** Whether other workers take the sessions over. */
  #handsOver = false

  constructor(runs: Pick<Runs, 'endAll'>, sessions: Pick<Sessions, 'all' | 'find'>) {
    this.#runs = runs
    this.#sessions = sessions
  }

  get hasBegun(): boolean {
    return this.#state !== 'serving'
  }

  /** Runs that have not ended after `graceMs` end with `worker_draining`, unless they wait to be handed over. */
  async begin(graceMs: number): Promise<void> {
    if (this.#state === 'serving') this.#state = 'draining'
    const timer = setTimeout(() => {
      this.#state = 'overdue'
    }, graceMs)
    await this.#runs.endAll(graceMs, (run) => this.#sessionOf(run)?.holds(run) ?? false)
    clearTimeout(timer)
  }

  holdQueues(): void {
    this.#handsOver = true
    for (const session of this.#sessions.all()) void session.hold()
  }

  /** Lets a session begin its messages. When the time is over they end instead. */
  keep(session: Session): void {
    session.resume()
    if (this.#state === 'overdue') void session.cancelAll('worker_draining')
  }

  /** Whether the session takes no message: another worker takes it over now, or this one ends. */
  isLeaving(session: Session): boolean {
    return this.hasBegun && !(this.#handsOver && session.isBusy)
  }

  #sessionOf({ tenant, sessionId }: Pick<Session, 'tenant'> & { sessionId: string | undefined }): Session | undefined {
    return sessionId === undefined ? undefined : this.#sessions.find(tenant, sessionId)
  }
}
