import { setTimeout as sleep } from 'node:timers/promises'
import type { RunRequest } from '../../../shared/cluster/commands/runs.ts'
import type { Run } from '../../../shared/work/runs/run.ts'
import { type ExecuteOneShot, seedsOf } from '../prepare-one-shot.ts'
import type { BusyMarks } from './busy-marks.ts'
import type { Session } from './session.ts'
import type { Sessions } from './sessions.ts'

/** Longer than a gateway tries to have a session opened. */
const ASKED_FOR_MS = 30_000

/** Gives each one-shot run a session to itself, so that it is stored, and goes on at another worker, as the message of a session (D32.7c). */
export class OneShots {
  readonly #sessions: Pick<Sessions, 'createOneShot' | 'endOneShot'>
  readonly #marks: Pick<BusyMarks, 'owner' | 'end'>

  constructor(sessions: Pick<Sessions, 'createOneShot' | 'endOneShot'>, marks: Pick<BusyMarks, 'owner' | 'end'>) {
    this.#sessions = sessions
    this.#marks = marks
  }

  /** Begins a run in its session. The first entry of its log is the mark by which it is found when this process has died. */
  post(run: Run, request: RunRequest, execute: ExecuteOneShot): void {
    const session = this.#sessions.createOneShot(run, { messages: seedsOf(request), busyAt: this.#marks.owner })
    const { messages: _history, ...message } = request // The session has the history.
    session.post({ run, message, execute: (_run, signal) => execute(session.start())(run, signal) })
    this.#endWith([run], session, { isOpened: false })
  }

  /** Ends a session that was opened here with its runs, which go on from another process. */
  endOpened(runs: readonly Pick<Run, 'ended'>[], session: Session): void {
    this.#endWith(runs, session, { isOpened: true })
  }

  /**
   * Forgets the session when its runs have ended and that is stored, or, when none of them goes on, a little later: gateways ask for it. What is stored is
   * deleted later still: readers of another worker may lack the end.
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
