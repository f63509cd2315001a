import { rememberedPage } from '../../shared/broker/permissions/remembered-page.ts'
import type { Inbox } from '../../shared/broker/port.ts'
import { AppError } from '../../shared/errors.ts'
import { type IsHeapHigh, refuseAtHighHeap } from '../../shared/heap.ts'
import type { ModelSource } from '../runs/models.ts'
import type { Runs } from '../runs/runs.ts'
import { LoadingRuns } from './loading-runs.ts'
import type { PrepareOneShot } from './prepare-one-shot.ts'
import type { PrepareRun } from './prepare-run.ts'
import type { Sessions } from './sessions.ts'

export type InboxOptions = {
  runs: Runs
  sessions: Sessions
  models: Pick<ModelSource, 'load'>
  prepareRun: PrepareRun
  prepareOneShot: PrepareOneShot
  isDraining: () => boolean
  isHeapHigh: IsHeapHigh
}

const DRAIN_RETRY_SECS = 5

/** Carries out each command on its session or run. A refused command has no effect. */
export function createInbox(options: InboxOptions): Inbox {
  const { runs, sessions, isDraining, isHeapHigh } = options
  return {
    createSession(tenant, sessionId, token) {
      refuseIf(isDraining())
      refuseAtHighHeap(isHeapHigh)
      return sessions.create({ id: sessionId, tenant, token }).summary
    },
    getSession: (tenant, sessionId) => sessions.get(tenant, sessionId).summary,
    listRemembered: (tenant, page) => rememberedPage(sessions.remembered(tenant), page),
    deleteSession: (tenant, sessionId, token) => sessions.remove(tenant, sessionId, token),

    ...createRunCommands(options),
    listRuns: (tenant, filter) => runs.list(tenant, filter),
    getRun: (tenant, runId) => runs.get(tenant, runId).summary,
    followRun: (tenant, runId, after) => runs.get(tenant, runId).follow(after),
  }
}

/** The commands that start a run wait for the tenant's models, which can be cancelled like the run itself. */
function createRunCommands(options: InboxOptions): Pick<Inbox, 'startRun' | 'sendMessage' | 'cancelRun'> {
  const { runs, sessions, models, prepareRun, prepareOneShot, isDraining, isHeapHigh } = options
  const loadingRuns = new LoadingRuns()
  return {
    startRun(tenant, runId, request) {
      refuseIf(isDraining())
      refuseAtHighHeap(isHeapHigh)
      const open = () => {
        refuseIf(isDraining())
        const execute = prepareOneShot(tenant, request)
        void runs.open({ id: runId, tenant, sessionId: undefined }).execute(execute)
      }
      return loadingRuns.open(tenant, runId, { loading: models.load(tenant), open })
    },
    sendMessage(tenant, runId, { sessionId, ...message }) {
      sessions.get(tenant, sessionId)
      refuseIf(isDraining())
      refuseAtHighHeap(isHeapHigh)
      const open = () => {
        const session = sessions.get(tenant, sessionId)
        refuseIf(isDraining())
        sessions.checkRoom(session)
        const prepared = prepareRun(tenant, message)
        const { workspace } = session
        session.post(runs.open({ id: runId, tenant, sessionId, workspace }), (run) =>
          prepared.execute(run, session.start()),
        )
      }
      return loadingRuns.open(tenant, runId, { loading: models.load(tenant), open })
    },
    cancelRun(tenant, runId) {
      if (!loadingRuns.cancel(tenant, runId)) runs.get(tenant, runId).cancel('cancelled')
    },
  }
}

function refuseIf(isDraining: boolean): void {
  if (!isDraining) return
  throw new AppError('unavailable', 'this server is shutting down; send the request again', {
    retryAfterSecs: DRAIN_RETRY_SECS,
    code: 'worker_draining',
  })
}
