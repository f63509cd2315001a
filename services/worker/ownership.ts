import { logSessionOf } from '../../shared/agent/sessions/one-shot.ts'
import type { ClusterWorker } from '../../shared/cluster/relay/worker/cluster-worker.ts'
import { withDeadline } from '../../shared/kernel/async/deadline.ts'
import type { Admission } from '../../shared/tenancy/limits/admission.ts'
import type { Run } from '../../shared/work/runs/run.ts'
import type { Runs } from '../../shared/work/runs/runs.ts'
import type { Workspaces } from '../../shared/work/runs/workspaces.ts'
import type { Draining } from './draining.ts'
import { type AdoptedQueueDeps, adoptQueue } from './sessions/adopted-queue.ts'
import type { DurabilityDeps } from './sessions/durability.ts'
import { createGoOn, type GoOnDeps, markBusy } from './sessions/go-on.ts'
import type { Session } from './sessions/session.ts'
import type { SessionSaver } from './sessions/session-saver.ts'
import type { Sessions } from './sessions/sessions.ts'

export type OwnershipDeps = AdoptedQueueDeps & {
  runs: Runs
  sessions: Sessions
  workspaces: Workspaces
  draining: Draining
  admission: Admission
  saver: Pick<SessionSaver, 'note'> | undefined
} & Pick<GoOnDeps, 'claims' | 'marks' | 'oneShots' | 'permissions'>

/** How long a draining worker waits for the store before it leaves a run. */
const STORED_WITHIN_MS = 3_000
const storeIsSlow = () => new Error('the store is too slow')

/** How this worker begins and ends its ownership of sessions. */
export type Ownership = Pick<
  ClusterWorker<Session>,
  'sessions' | 'oneShots' | 'find' | 'adopt' | 'keep' | 'release' | 'drainRuns' | 'leave' | 'abortAll'
> &
  Pick<DurabilityDeps, 'leaveRuns' | 'goOn'> & {
    isStored(session: Session): boolean
    /** Leaves the session's runs to the next process. */
    leaveStored(session: Session): Promise<void>
  }

export function createOwnership(deps: OwnershipDeps): Ownership {
  const { runs, sessions, workspaces, draining, admission, saver } = deps
  const leave = (run: Run) => {
    runs.release(run)
    admission.handOver(run.tenant, run.id)
  }
  const leaveRuns = (session: Session) => {
    if (!session.runs) return void session.cancelAll('worker_lost')
    for (const run of [...runs.live]) if (logSessionOf(run) === session.id && run.tenant === session.tenant) leave(run)
  }
  const release = (session: Session) => {
    const moved = sessions.release(session)
    workspaces.release(session.tenant, session.workspace)
    for (const { run } of moved) leave(run)
  }
  return {
    sessions: () => sessions.all(),
    oneShots: () => sessions.oneShots,
    find: ({ tenant, id }) => sessions.find(tenant, id),
    adopt({ waiting = [], ...state }) {
      const session = sessions.adopt(state)
      workspaces.openKept(session.tenant, session.workspace) // The folder is where the previous worker left it.
      void session.hold()
      adoptQueue(session, waiting, deps)
      if (session.log?.isDue) saver?.note(session)
      if (waiting.length > 0) void markBusy(session, deps.marks)
      return session
    },
    keep: (session) => draining.keep(session),
    release,
    ...createLeaving({ leaveRuns, release }),
    leaveRuns,
    goOn: createGoOn(deps),
    abortAll() {
      const end = (run: Run) => (isStored(run, sessions) ? leave(run) : run.cancel('worker_lost'))
      for (const run of [...runs.live]) end(run)
      for (const session of [...sessions.all(), ...sessions.oneShots]) release(session)
    },
  }
}

type Leaving = Pick<Ownership, 'isStored' | 'drainRuns' | 'leave' | 'leaveStored'>

/** How the runs of a session are left to another process. */
function createLeaving({ leaveRuns, release }: Pick<Ownership, 'leaveRuns' | 'release'>): Leaving {
  const drainRuns = async (session: Session): Promise<boolean> => {
    if (!session.runs) return false
    return withDeadline(session.runs.drain(), STORED_WITHIN_MS, storeIsSlow).catch(() => false)
  }
  const leave = (session: Session) => {
    session.log?.close('moved')
    leaveRuns(session)
    release(session)
  }
  return {
    isStored: ({ runs }) => runs !== undefined,
    drainRuns,
    leave,
    async leaveStored(session) {
      await drainRuns(session) // If the store does not answer, the session's log looks as if this process had failed.
      leave(session)
    },
  }
}

/** Whether the run is in its session's log, from which another worker can continue it. */
const isStored = (run: Run, sessions: Sessions): boolean => sessions.ofRun(run)?.runs !== undefined
