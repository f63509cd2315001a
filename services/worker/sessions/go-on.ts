import { isOneShotSession } from '../../../shared/agent/sessions/one-shot.ts'
import type { StoredRun, StoredRuns } from '../../../shared/agent/sessions/open-runs.ts'
import type { MessageRequest } from '../../../shared/cluster/commands/sessions.ts'
import type { SessionClaims } from '../../../shared/cluster/owners/held-claims.ts'
import { retryUntil } from '../../../shared/kernel/async/retry.ts'
import type { Draining } from '../draining.ts'
import { type AdoptedQueueDeps, adoptQueue, adoptRun } from './adopted-queue.ts'
import type { BusyMarks } from './busy-marks.ts'
import type { OneShots } from './one-shots.ts'
import type { Session } from './session.ts'
import type { WaitingMessage } from './session-state.ts'

export type GoOnDeps = AdoptedQueueDeps & {
  draining: Pick<Draining, 'keep'>
  claims?: Pick<SessionClaims, 'moved'> | undefined
  marks?: Pick<BusyMarks, 'add'> | undefined
  oneShots?: Pick<OneShots, 'endOpened'> | undefined
}

const RETRY_MS = 200

/**
 * Continues the runs of a session whose worker died. No run acts or sends an event before the store names this worker as the owner, so that
 * readers find it.
 */
export function createGoOn(deps: GoOnDeps): (session: Session, runs: StoredRuns) => Promise<void> {
  const { draining, claims, marks, oneShots } = deps
  return async (session, { open, ended }) => {
    const { tenant } = session
    void session.hold()
    const goingOn = adoptQueue(session, open.map(waitingOf), deps)
    const recordHere = async (runs: readonly StoredRun[]) => {
      const runIds = runs.map(({ runId }) => runId)
      if (runIds.length > 0) await claims?.moved(tenant, runIds)
    }
    await Promise.all([recordHere(open), open.length > 0 && markBusy(session, marks)])
    draining.keep(session)
    // Ended runs come last, because the readers of the continuing ones wait.
    for (const run of ended) adoptRun(session, waitingOf(run), deps)
    await recordHere(ended)
    if (isOneShotSession(session.id)) oneShots?.endOpened(goingOn, session)
  }
}

/** Marks a session that this worker has received from another one. Resolves when that is stored, or another worker has the session again. */
export async function markBusy(session: Session, marks: GoOnDeps['marks']): Promise<void> {
  const isOwn = () => session.log?.end === undefined
  const mark = async () => marks?.add(session)
  await retryUntil(mark, { pauses: RETRY_MS, mayPass: isOwn, ref: false }).catch(() => {}) // It fails for good only when another worker owns the session.
}

const waitingOf = ({ message, ...run }: StoredRun): WaitingMessage => ({ ...run, message: message as MessageRequest })
