import type { RunRequest } from '../../../shared/cluster/commands/runs.ts'
import type { Run } from '../../../shared/work/runs/run.ts'
import { type ExecuteOneShot, seedsOf } from '../prepare-one-shot.ts'
import type { BusyMarks } from './busy-marks.ts'
import type { Session } from './session.ts'
import type { Sessions } from './sessions.ts'

/** Gives each one-shot run a session to itself, so that it is stored, and goes on at another worker, as the message of a session (D32.7c). */
export class OneShots {
  readonly #sessions: Pick<Sessions, 'createOneShot' | 'endOneShot'>
  readonly #marks: Pick<BusyMarks, 'end'>

  constructor(sessions: Pick<Sessions, 'createOneShot' | 'endOneShot'>, marks: Pick<BusyMarks, 'end'>) {
    this.#sessions = sessions
    this.#marks = marks
  }

  /** Begins a run in its session. */
  post(run: Run, request: RunRequest, execute: ExecuteOneShot): void {
    const session = this.#sessions.createOneShot(run, seedsOf(request))
    session.post({ run, message: request, execute: (_run, signal) => execute(session.start())(run, signal) })
    this.endWith([run], session)
  }

  /** Forgets the session when its runs have ended and that is stored. What is stored is deleted a little later: another worker's readers may lack the end. */
  endWith(runs: readonly Pick<Run, 'ended'>[], session: Session): void {
    void Promise.all(runs.map(({ ended }) => ended))
      .then(() => session.log?.stored())
      .then((isOwn) => {
        if (isOwn) this.#marks.end(session)
        this.#sessions.endOneShot(session)
      })
  }
}
