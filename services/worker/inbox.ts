import { messagePage } from '../../shared/agent/engine/messages/page.ts'
import { seedHistory } from '../../shared/agent/engine/messages/seed.ts'
import { runHasEnded } from '../../shared/agent/engine/messages/steering.ts'
import { listFolder, readPiece } from '../../shared/agent/tools/workspace/listing.ts'
import type { Inbox } from '../../shared/cluster/commands/inbox.ts'
import type { RunRequest } from '../../shared/cluster/commands/runs.ts'
import { countLoads } from '../../shared/cluster/commands/tenant-loads.ts'
import { rememberedPage } from '../../shared/cluster/permissions/remembered-page.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import type { Steer } from '../../shared/kernel/events.ts'
import { isRunId } from '../../shared/kernel/ids.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { estimate } from '../../shared/tenancy/limits/estimate.ts'
import type { StartWait } from '../../shared/tenancy/limits/start-lines.ts'
import { aboutStart } from '../../shared/work/runs/records/record.ts'
import type { Run } from '../../shared/work/runs/run.ts'
import type { RunIdentity } from '../../shared/work/runs/run-identity.ts'
import type { Runs } from '../../shared/work/runs/runs.ts'
import type { Workspaces } from '../../shared/work/runs/workspaces.ts'
import { type IsHeapHigh, refuseAtHighHeap } from '../http/heap.ts'
import { checkChoices, checkFiles, createBegin, LoadingRuns, type StartChecks } from './begin-run.ts'
import type { Draining } from './draining.ts'
import type { FirstCallOf, PrepareOneShot } from './prepare-one-shot.ts'
import type { PrepareRun } from './prepare-run.ts'
import { branchOf, fork, isBranch } from './sessions/fork.ts'
import type { OneShots } from './sessions/one-shots.ts'
import type { Sessions } from './sessions/sessions.ts'

export type InboxOptions = StartChecks & {
  runs: Runs
  sessions: Sessions
  prepareRun: PrepareRun
  prepareOneShot: PrepareOneShot
  firstCallOf: FirstCallOf
  budgets?: Parameters<typeof estimate>[2]['budgets']
  /** Stores one-shot runs. Without it they end with this worker. */
  oneShots?: Pick<OneShots, 'post'> | undefined
  draining: Pick<Draining, 'hasBegun' | 'isLeaving'>
  isHeapHigh: IsHeapHigh
  workspaces: Pick<Workspaces, 'open' | 'openKept' | 'kept' | 'copy'>
}

const DRAIN_RETRY_SECS = 5
const ITS_CLIENT = { isAccepted: true }

/** Carries out each command on its session or run. A refused command has no effect. */
export function createInbox(options: InboxOptions): Inbox {
  const { runs, sessions, draining, isHeapHigh } = options
  return {
    createSession(tenant, sessionId, token, begin = []) {
      refuseIf(draining.hasBegun)
      refuseAtHighHeap(isHeapHigh)
      const identity = { id: sessionId, tenant, token }
      if (isBranch(begin)) return fork(identity, begin, options)
      return sessions.create(identity, { messages: seedHistory(begin) }).summary
    },
    branchOf: (tenant, sessionId, at) => branchOf(sessions.get(tenant, sessionId), at),
    getSession: (tenant, sessionId) => sessions.get(tenant, sessionId).summary,
    listSessions: (tenant, page) => sessions.page(tenant, page),
    listMessages: (tenant, sessionId, page) => {
      const { messages, all } = sessions.get(tenant, sessionId).conversation
      return messagePage({ sessionId, messages, all }, page)
    },
    renameSession(tenant, sessionId, title) {
      const session = sessions.get(tenant, sessionId)
      refuseIf(draining.isLeaving(session))
      session.title = title
      return session.summary
    },
    listRemembered: (tenant, page) => rememberedPage(sessions.remembered(tenant), page),
    forgetRemembered(tenant, sessionId, toolName) {
      refuseIf(draining.isLeaving(sessions.get(tenant, sessionId)))
      return sessions.forgetRemembered(tenant, sessionId, toolName)
    },
    deleteSession: (tenant, sessionId, token) => sessions.remove(tenant, sessionId, token),

    ...{ ...createRunCommands(options), estimateRun: createEstimateRun(options) },
    listRuns: (tenant, filter) => runs.list(tenant, filter),
    listTenants: (range) => countLoads({ runs: runs.live, sessions: sessions.all() }, range),
    acceptRun: (tenant, runId) => runs.get(tenant, runId).accept(),
    steerRun: (tenant, runId, steer) => tell(runs.get(tenant, runId), steer, options),
    ...createFolderCommands(options),
    getRun: (tenant, runId) => runs.get(tenant, runId).description,
    followRun: (tenant, runId, after) => runs.get(tenant, runId).follow(after),
  }
}

/** The folders of sessions and one-shot runs, where they are. */
function createFolderCommands({ sessions, runs, workspaces }: InboxOptions): Pick<Inbox, 'listFiles' | 'readFile'> {
  const open = async (tenant: TenantId, scopeId: string) => {
    const run = isRunId(scopeId) ? runs.get(tenant, scopeId) : undefined
    const { workspace } = run ?? sessions.get(tenant, scopeId)
    await workspaces.kept?.bring(tenant, workspace)
    return run?.sessionId === undefined && run
      ? workspaces.open(tenant, workspace)
      : workspaces.openKept(tenant, workspace)
  }
  return {
    listFiles: async (tenant, scopeId, page) => listFolder(await open(tenant, scopeId), page),
    readFile: async (tenant, scopeId, part) => readPiece(await open(tenant, scopeId), part),
  }
}

/** Makes the same checks as a start, and returns the first model call that the run would make. */
function createEstimateRun({ draining, ...options }: InboxOptions): Inbox['estimateRun'] {
  return async (tenant, request) => {
    refuseIf(draining.hasBegun)
    await checkChoices(tenant, { request }, options)
    await options.models.load(tenant)
    if (request.files) await checkFiles(tenant, request, options)
    const { priceOf, ...call } = await options.firstCallOf(tenant, request)
    const payer = { tenant, customer: request.customer_id }
    return estimate(payer, [{ name: 'main', ...call }], { priceOf, budgets: options.budgets })
  }
}

function tell(run: Run, steer: Steer, { sessions, draining }: Pick<InboxOptions, 'sessions' | 'draining'>): void {
  refuseIf(draining.hasBegun && sessions.ofRun(run)?.holds(run) === true) // The run is about to move with its session.
  if (run.signal.aborted) throw runHasEnded()
  run.steering.add(steer)
}

/**
 * The commands that start a run wait for the tenant's models and for its admission by the tenant's limits, which can be cancelled like
 * the run itself.
 */
function createRunCommands(options: InboxOptions): Pick<Inbox, 'startRun' | 'sendMessage' | 'cancelRun'> {
  const { runs, sessions, prepareRun, prepareOneShot, oneShots, draining, isHeapHigh } = options
  const loadingRuns = new LoadingRuns<StartWait | undefined>()
  const begin = createBegin(options, loadingRuns)
  return {
    startRun(tenant, runId, request) {
      refuseIf(draining.hasBegun)
      refuseAtHighHeap(isHeapHigh)
      const open = (wait?: StartWait) => {
        refuseIf(draining.hasBegun)
        const execute = prepareOneShot(tenant, request)
        const run = runs.open(accepted({ tenant, id: runId, sessionId: undefined }, { request, wait }))
        void (oneShots ? oneShots.post(run, request, execute) : run.execute(execute()))
        return run
      }
      return begin(tenant, { runId, request }, open)
    },
    sendMessage(tenant, runId, { sessionId, ...message }) {
      refuseIf(draining.isLeaving(sessions.get(tenant, sessionId)))
      refuseAtHighHeap(isHeapHigh)
      const open = (wait?: StartWait) => {
        const session = sessions.get(tenant, sessionId)
        refuseIf(draining.isLeaving(session))
        sessions.checkRoom(session)
        session.checkPlace(message)
        const prepared = prepareRun(tenant, message)
        const identity = { tenant, id: runId, sessionId, workspace: session.workspace }
        const run = runs.open(accepted(identity, { request: message, wait }))
        session.post({ run, message, execute: () => prepared.execute(run, session.start()) })
        return run
      }
      return begin(tenant, { runId, request: message, kept: sessions.get(tenant, sessionId).clientTools }, open)
    },
    cancelRun: (tenant, runId, client = ITS_CLIENT) =>
      loadingRuns.cancel(tenant, runId) ? undefined : end(runs, runs.get(tenant, runId), client),
  }
}

type Accepted = { request: RunRequest; wait: StartWait | undefined }

/** The identity of a run that is accepted now, and begins when its client knows of it. */
function accepted(
  { tenant, id, sessionId, workspace = id }: Pick<RunIdentity, 'tenant' | 'id' | 'sessionId' | 'workspace'>,
  { request, wait }: Accepted,
): RunIdentity {
  const startedAt = new Date()
  const about = aboutStart(request, startedAt)
  const needsNoReader = request.background ?? false
  return { id, tenant, sessionId, workspace, startedAt, about, isHeld: true, needsNoReader, wait }
}

/** Ends the run. Once it resolves, replies to the run's permission requests are refused (D37.2). */
function end(runs: Runs, run: Run, client: Parameters<Runs['end']>[1]): Promise<void> {
  runs.end(run, client)
  return run.asksDecided()
}

function refuseIf(isDraining: boolean): void {
  if (!isDraining) return
  throw new AppError('unavailable', 'this server is shutting down; send the request again', {
    retryAfterSecs: DRAIN_RETRY_SECS,
    code: 'worker_draining',
  })
}
