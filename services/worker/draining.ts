import type { Runs } from '../../shared/work/runs/runs.ts'
import type { Session } from './sessions/session.ts'
import type { Sessions } from './sessions/sessions.ts'

type State = 'serving' | 'draining' | 'overdue'

/** Leaves stored runs to another process. */
export type Leaving = {
  /** Whether another process could continue the runs of the session. */
  isStored(session: Session): boolean
  /** Stops the session's runs here without any further effect on them. */
  leave(session: Session): Promise<void>
}

/**
 * The end of a worker's life, in which it takes no new work.
 *
 * | State    | Runs that are here                                                                      | Event            | Next state |
 * |----------|-----------------------------------------------------------------------------------------|------------------|------------|
 * | serving  | go on, and new ones come                                                                | `begin`          | draining   |
 * | draining | go on, and so do the messages of a session that stays (`keep`)                           | its time is over | overdue    |
 * | overdue  | are left to the next process where they are stored, wait for another worker that takes their session, or end with `worker_draining` | | |
 */
export class Draining {
  readonly #runs: Pick<Runs, 'endAll'>
  readonly #sessions: Pick<Sessions, 'all' | 'oneShots' | 'ofRun'>
  readonly #leaving: Leaving
  #state: State = 'serving'
  /** Whether other workers take over the sessions. */
  #handsOver = false

  constructor(runs: Pick<Runs, 'endAll'>, sessions: Pick<Sessions, 'all' | 'oneShots' | 'ofRun'>, leaving: Leaving) {
    this.#runs = runs
    this.#sessions = sessions
    this.#leaving = leaving
  }

  get hasBegun(): boolean {
    return this.#state !== 'serving'
  }

  /**
   * After `graceMs`, the remaining stored runs are left to another process, and the others end with `worker_draining`,
   * unless they wait to be handed over.
   */
  async begin(graceMs: number): Promise<void> {
    if (this.#state === 'serving') this.#state = 'draining'
    const timer = setTimeout(() => {
      this.#state = 'overdue'
      for (const session of this.#stored()) void this.#leaving.leave(session)
    }, graceMs)
    await this.#runs.endAll(graceMs, (run) => {
      const session = this.#sessions.ofRun(run)
      return session !== undefined && (session.holds(run) || this.#leaving.isStored(session))
    })
    clearTimeout(timer)
  }

  holdQueues(): void {
    this.#handsOver = true
    for (const session of this.#all()) void session.rest()
  }

  /** For when no other process takes over the sessions: leaves each stored run to the next process, as soon as it can continue there (D37.4). */
  leaveAtRest(): void {
    const leave = async (session: Session) => {
      await session.rest()
      if (session.runs?.isEmpty === false) await this.#leaving.leave(session)
    }
    for (const session of this.#stored()) void leave(session)
  }

  /** Lets a session start its queued messages. When the drain time is over they end, or are left to the next process, instead. */
  keep(session: Session): void {
    session.resume()
    if (this.#state !== 'overdue') return
    if (this.#leaving.isStored(session)) void this.#leaving.leave(session)
    else void session.cancelAll('worker_draining')
  }

  /** Whether the session takes no message: another worker takes it over now, or this one ends. */
  isLeaving(session: Session): boolean {
    return this.hasBegun && !(this.#handsOver && session.isBusy)
  }

  #stored(): Session[] {
    return this.#all().filter((session) => session.runs?.isEmpty === false && this.#leaving.isStored(session))
  }

  #all(): Session[] {
    return [...this.#sessions.all(), ...this.#sessions.oneShots]
  }
}
