import type { Inbox, RunRequest } from '../../shared/broker/port.ts'
import { Conversation } from '../../shared/engine/conversation.ts'
import { AppError } from '../../shared/errors.ts'
import type { WarningEvent } from '../../shared/events.ts'
import type { StartEngine } from './engine.ts'
import type { Runs } from './runs.ts'
import type { Sessions } from './sessions.ts'

export type InboxDeps = { runs: Runs; sessions: Sessions; startEngine: StartEngine; isDraining: () => boolean }

const DRAIN_RETRY_SECS = 5

/** Brings each command to its session or run. */
export function createInbox({ runs, sessions, startEngine, isDraining }: InboxDeps): Inbox {
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
      const run = runs.open({ id: runId, tenant, sessionId: undefined })
      void run.execute(startEngine(request, new Conversation(), warningsFor(request)))
    },
    sendMessage(tenant, runId, { sessionId, ...message }) {
      const session = sessions.get(tenant, sessionId)
      refuseWhileDraining()
      session.checkRoom()
      const run = runs.open({ id: runId, tenant, sessionId })
      session.post(run, startEngine(message, session.conversation, []))
    },

    listRuns: (tenant, filter) => runs.list(tenant, filter),
    getRun: (tenant, runId) => runs.get(tenant, runId).summary,
    followRun: (tenant, runId, after) => runs.get(tenant, runId).follow(after),
    cancelRun: (tenant, runId) => runs.get(tenant, runId).cancel('cancelled'),
  }
}

/** Customers' lines are not kept yet: such a run is a stateless one and says so (api.md "Per-customer line"). */
function warningsFor({ customer_id }: RunRequest): WarningEvent[] {
  if (!customer_id) return []
  return [
    {
      type: 'warning',
      code: 'customer_scope_fallback',
      message: "the customer's line is not available: this run is stateless and is not recorded",
      detail: { customer_id },
    },
  ]
}
