import { setTimeout as sleep } from 'node:timers/promises'
import type { RunRequest } from '../../../shared/cluster/commands/runs.ts'
import type { Run } from '../../../shared/work/runs/run.ts'
import { type ExecuteOneShot, seedsOf } from '../prepare-one-shot.ts'
import type { BusyMarks } from './busy-marks.ts'
import type { Session } from './session.ts'
import type { Sessions } from './sessions.ts'

/** Longer than a gateway tries to have a worker open a session. */
const ASKED_FOR_MS = 30_000

/** Gives each one-shot run its own session, so that it is stored, and can continue at another worker, like the message of a session (D32.7c). */
export class OneShots {
  readonly #sessions: Pick<Sessions, 'createOneShot' | 'endOneShot'>
  readonly #marks: Pick<BusyMarks, 'owner' | 'end'>

  constructor(sessions: Pick<Sessions, 'createOneShot' | 'endOneShot'>, marks: Pick<BusyMarks, 'owner' | 'end'>) {
    this.#sessions = sessions
    this.#marks = marks
  }

  /** Begins a run in its session. The first entry of its log is also its mark, by which it is found when this process has died. */
  post(run: Run, request: RunRequest, execute: ExecuteOneShot): void {
    const session = this.#sessions.createOneShot(run, { messages: seedsOf(request), busyAt: this.#marks.owner })
    const { messages: _history, ...message } = request // The session already contains the history.
    session.post({ run, message, execute: (_run, signal) => execute(session.start())(run, signal) })
    this.#endWith([run], session, { isOpened: false })
  }

  /** Ends a session that was opened here, when its runs, which another process had begun, have ended. */
  endOpened(runs: readonly Pick<Run, 'ended'>[], session: Session): void {
    this.#endWith(runs, session, { isOpened: true })
  }

  /**
   * Forgets the session when its runs have ended and that is stored. If no run continues, it is forgotten after `ASKED_FOR_MS`, because gateways ask
   * for it. Its stored data is deleted even later, because readers of another worker may lack the run's end.
   */
  #endWith(runs: readonly Pick<Run, 'ended'>[], session: Session, how: { isOpened: boolean }): void {
    const ended = runs.length > 0 ? Promise.all(runs.map((run) => run.ended)) : sleep(ASKED_FOR_MS, [], { ref: false })
    void ended
      .then(() => session.log?.stored())
      .then((isOwn) => {
        if (isOwn) this.#marks.end(session, how)
        this.#sessions.endOneShot(session)
      })
  }
}
