import type { Inbox } from '../../shared/broker/port.ts'
import { AppError } from '../../shared/errors.ts'
import type { PrepareOneShot } from './prepare-one-shot.ts'
import type { PrepareRun } from './prepare-run.ts'
import type { Runs } from './runs.ts'
import type { Sessions } from './sessions.ts'

export type InboxOptions = {
  runs: Runs
  sessions: Sessions
  prepareRun: PrepareRun
  prepareOneShot: PrepareOneShot
  isDraining: () => boolean
}

const DRAIN_RETRY_SECS = 5

/** Carries out each command on its session or run. A refused command has no effect. */
export function createInbox({ runs, sessions, prepareRun, prepareOneShot, isDraining }: InboxOptions): Inbox {
  const refuseWhileDraining = () => {
    if (!isDraining()) return
    throw new AppError('unavailable', 'this server is shutting down; send the request again', {
      retryAfterSecs: DRAIN_RETRY_SECS,
      code: 'worker_draining',
    })
  }

  return {
    createSession(tenant, sessionId) {
      refuseWhileDraining()
      return sessions.create({ id: sessionId, tenant }).summary
    },
    getSession: (tenant, sessionId) => sessions.get(tenant, sessionId).summary,
    deleteSession: (tenant, sessionId) => sessions.remove(tenant, sessionId),

    startRun(tenant, runId, request) {
      refuseWhileDraining()
      const execute = prepareOneShot(tenant, request)
      void runs.open({ id: runId, tenant, sessionId: undefined }).execute(execute)
    },
    sendMessage(tenant, runId, { sessionId, ...message }) {
      const session = sessions.get(tenant, sessionId)
      refuseWhileDraining()
      session.checkRoom()
      const prepared = prepareRun(message)
      session.post(runs.open({ id: runId, tenant, sessionId }), (run) => prepared.execute(run, session.start()))
    },

    listRuns: (tenant, filter) => runs.list(tenant, filter),
    getRun: (tenant, runId) => runs.get(tenant, runId).summary,
    followRun: (tenant, runId, after) => runs.get(tenant, runId).follow(after),
    cancelRun: (tenant, runId) => runs.get(tenant, runId).cancel('cancelled'),
  }
}
