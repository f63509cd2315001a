import type { Inbox } from '../../shared/broker/port.ts'
import { AppError } from '../../shared/errors.ts'
import type { StartOneShot } from './one-shots.ts'
import type { PrepareRun } from './prepare-run.ts'
import type { Runs } from './runs.ts'
import type { Sessions } from './sessions.ts'

export type InboxDeps = {
  runs: Runs
  sessions: Sessions
  startEngine: PrepareRun
  startOneShot: StartOneShot
  isDraining: () => boolean
}

const DRAIN_RETRY_SECS = 5

/** Brings each command to its session or run. */
export function createInbox({ runs, sessions, startEngine, startOneShot, isDraining }: InboxDeps): Inbox {
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
      const execute = startOneShot(tenant, request)
      void runs.open({ id: runId, tenant, sessionId: undefined }).execute(execute)
    },
    sendMessage(tenant, runId, { sessionId, ...message }) {
      const session = sessions.get(tenant, sessionId)
      refuseWhileDraining()
      session.checkRoom()
      const execute = startEngine(message, () => session.start)
      session.post(runs.open({ id: runId, tenant, sessionId }), execute)
    },

    listRuns: (tenant, filter) => runs.list(tenant, filter),
    getRun: (tenant, runId) => runs.get(tenant, runId).summary,
    followRun: (tenant, runId, after) => runs.get(tenant, runId).follow(after),
    cancelRun: (tenant, runId) => runs.get(tenant, runId).cancel('cancelled'),
  }
}
