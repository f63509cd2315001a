import { LineCache } from '../../shared/agent/customers/cache.ts'
import { type CustomerIdentity, CustomerLine, type LineStore } from '../../shared/agent/customers/line.ts'
import type { Files } from '../../shared/agent/files/files.ts'
import type { SessionStore } from '../../shared/agent/sessions/store.ts'
import type { ToolBox } from '../../shared/agent/tools/port.ts'
import type { Fence } from '../../shared/cluster/members/fence.ts'
import type { SessionClaims } from '../../shared/cluster/owners/held-claims.ts'
import type { PermissionStore } from '../../shared/cluster/permissions/store.ts'
import type { ClusterWorker } from '../../shared/cluster/relay/worker/cluster-worker.ts'
import type { LoopBudget } from '../../shared/kernel/async/loop-budget.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'
import type { Admission } from '../../shared/tenancy/limits/admission.ts'
import type { Budgets } from '../../shared/tenancy/limits/budgets.ts'
import type { UsageSink } from '../../shared/tenancy/usage/recorder.ts'
import { createFenceGuard } from '../../shared/work/runs/fence-guard.ts'
import type { ModelSource } from '../../shared/work/runs/models.ts'
import type { RunRecorder } from '../../shared/work/runs/records/recorder.ts'
import { RunReporter } from '../../shared/work/runs/run-report.ts'
import { Runs } from '../../shared/work/runs/runs.ts'
import type { Workspaces } from '../../shared/work/runs/workspaces.ts'
import type { IsHeapHigh } from '../http/heap.ts'
import type { Probes } from './begin-run.ts'
import { Draining } from './draining.ts'
import type { EventReporter } from './event-reporter.ts'
import { createInbox } from './inbox.ts'
import { keepBeforeMove, keepFiles, storeEffects } from './keep-files.ts'
import { createOwnership } from './ownership.ts'
import { type AskTimes, createPermissionRequester } from './permission-requester.ts'
import {
  createFirstCallOf,
  createPrepareCustomerRun,
  createPrepareOneShot,
  type FirstCallOf,
  type PlanQueue,
  type PrepareOneShot,
} from './prepare-one-shot.ts'
import { createPrepareRun, type PrepareRun } from './prepare-run.ts'
import type { AdoptedQueueDeps } from './sessions/adopted-queue.ts'
import type { BusyMarks } from './sessions/busy-marks.ts'
import { createDurability, type Durability, type DurabilityDeps } from './sessions/durability.ts'
import { OneShots } from './sessions/one-shots.ts'
import type { Session } from './sessions/session.ts'
import { Sessions } from './sessions/sessions.ts'

export type WorkerLimits = {
  runsPerWorker: number
  runsPerTenant: number
  runResumeMs: number
  sessionsPerWorker: number
  sessionsPerTenant: number
  sessionMemoryBytes: number
  /** The share of `sessionMemoryBytes` that one tenant may take. */
  tenantShare: number
  sessionIdleMs: number
  permissionTimeoutMs: number
  clientToolTimeoutMs: number
  maxTurns: number
  customerEngines: number
  /** Negative: a line is never removed for being idle. */
  customerIdleMs: number
  customerHistoryEntries: number
  customerHistoryChars: number
}

/** The parts that need a store, and exist together. */
export type Stored = {
  /** Customers' lines. */
  lines: LineStore
  usage: UsageSink
  recorder: Pick<RunRecorder, 'begin'>
  /** The files of messages. */
  files: Pick<Files, 'read'>
  /** The results of the models' probes. */
  probes: Probes
}

/** Where sessions are kept. `marks` are of those that have runs; `undefined`: runs end with this worker. */
export type KeptSessions = { store: SessionStore; marks: BusyMarks | undefined }

export type WorkerDeps = {
  models: ModelSource
  toolBox: ToolBox
  /** Checks the schemas of runs, and answers against them. */
  schemas: Pick<SchemaCheckers, 'of'>
  permissions: PermissionStore
  /** `undefined`: this server has no store. */
  stored: Stored | undefined
  /** `undefined`: sessions are in memory only, and end with this worker (DURABILITY). */
  keptSessions: KeptSessions | undefined
  /** This worker's claims on its sessions; `undefined`: there is no other process. */
  claims: SessionClaims | undefined
  planQueue: PlanQueue
  reporter: EventReporter
  admission: Admission
  /** Limits the time that starts take in one turn of the event loop; `undefined` where the HTTP server does. */
  turns?: LoopBudget | undefined
  /** Left out: no tenant has a budget. */
  budgets?: Pick<Budgets, 'standings' | 'exhausted'> | undefined
  fence: Fence
  isHeapHigh: IsHeapHigh
  metrics: Metrics
  workspaces: Workspaces
  limits: WorkerLimits
  log: Log
}

/** Owns sessions and runs, and hosts the engine. */
export type Worker = ClusterWorker<Session> & {
  /** For a worker without others: leaves stored runs to the next process. Call it when it drains. */
  leaveAtRest(): void
  /** Resolves when the sessions are stored, or after a short time if the store does not answer. */
  sessionsSettled(): Promise<void>
}

export function createWorker(deps: WorkerDeps): Worker {
  const runs = createRuns(deps)
  const durable = createDurabilityFor(deps, {
    release: (session) => own.release(session),
    leaveRuns: (session) => own.leaveRuns(session),
    goOn: (session, stored) => own.goOn(session, stored),
  })
  const sessions = createSessions(deps, durable)
  deps.metrics.gauge('runs', () => runs.countByStatus())
  deps.metrics.gauge('runs_limit', () => deps.limits.runsPerWorker)
  deps.metrics.gauge('sessions', () => sessions.count)

  const draining = new Draining(runs, sessions, {
    isStored: (session) => own.isStored(session),
    leave: (session) => own.leaveStored(session),
  })
  const marks = deps.keptSessions?.marks
  const oneShots = marks && new OneShots(sessions, marks)
  const parts = {
    ...{ ...deps, ...createPrepare(deps), probes: deps.stored?.probes, marks },
    ...{ runs, sessions, oneShots, draining },
  }
  const { kept } = deps.workspaces
  const lostFiles: AdoptedQueueDeps['lostFiles'] = async ({ tenant, workspace }, files) =>
    (await kept?.lacks(tenant, workspace, files)) ?? []
  const own = createOwnership({ ...parts, lostFiles, saver: durable?.saver })
  const inbox = createInbox(parts)
  return {
    inbox: durable ? durable.wrap(inbox, { sessions, isDraining: () => draining.hasBegun }) : inbox,
    sessionsSettled: async () => durable?.settled(),
    drain: (graceMs) => draining.begin(graceMs),
    holdQueues: () => draining.holdQueues(),
    leaveAtRest: () => draining.leaveAtRest(),
    isDraining: () => draining.hasBegun,
    liveRuns: () => runs.live.size,
    runsServed: (signal) => runs.served(signal),
    knowsRun: (tenant, runId) => runs.has(tenant, runId),
    ...own,
  }
}

const MAX_JOURNAL_BYTES = 64 * 1024 * 1024

/** When a run is forgotten its permission requests and, outside a session, its folder are deleted, too. */
function createRuns({ permissions, workspaces, limits, log, metrics, reporter, stored }: WorkerDeps): Runs {
  const runLimits = {
    maxLive: limits.runsPerWorker,
    maxLivePerTenant: limits.runsPerTenant,
    resumeMs: limits.runResumeMs,
    maxJournalBytes: MAX_JOURNAL_BYTES,
  }
  const ends = new RunReporter({ log, metrics, usage: stored?.usage, recorder: stored?.recorder })
  return new Runs(runLimits, {
    onBug: ({ id }, cause) => log.error('a run failed by a bug', { run_id: id, cause }),
    onEvent: () => metrics.count('events'),
    report: (run) => ends.openRun(run),
    onStarted: (run) => reporter.runStarted(run),
    onWaiting: (run) => reporter.runWaiting(run),
    onEnded: (run, last) => reporter.runEnded(run, last),
    onForgotten({ id, tenant, scopeId, sessionId, hasAsked }) {
      if (hasAsked) permissions.forget(tenant, scopeId, id).catch((cause: unknown) => logFailure(cause, log))
      if (sessionId === undefined) workspaces.remove(tenant, id)?.catch((cause: unknown) => logFailure(cause, log))
    },
  })
}

/** When a session is removed its permission requests and its folder are deleted, too, unless another process owns it by now. */
function createSessions(deps: WorkerDeps, durable: Durability | undefined): Sessions {
  const { permissions, workspaces, claims, limits, log } = deps
  const onRemoved = async (session: Session) => {
    const { tenant, id, workspace } = session
    // Deleted before the id is free: a new session with the same id may have its own requests.
    await permissions.forget(tenant, id).catch((cause: unknown) => logFailure(cause, log))
    const isOwner = (await claims?.release(session)) ?? true
    // A session whose creation was refused but stored may be open at another worker by now.
    const isGone = isOwner && session.log?.end !== 'refused'
    if (isGone) workspaces.remove(tenant, workspace)?.catch((cause: unknown) => logFailure(cause, log))
    else workspaces.release(tenant, workspace)
    if (isGone) durable?.remove(session).catch((cause: unknown) => logFailure(cause, log)) // If this fails, the stored session expires by itself.
    return isOwner
  }
  const { kept } = workspaces
  const onHeld = kept && ((session: Session) => keepBeforeMove(session, { kept, log }))
  const keeping = { ...durable?.keeping, onHeld }
  return new Sessions({ room: roomOf(limits), idleMs: limits.sessionIdleMs }, onRemoved, keeping)
}

function createDurabilityFor(
  deps: WorkerDeps,
  own: Pick<DurabilityDeps, 'release' | 'leaveRuns' | 'goOn'>,
): Durability | undefined {
  const { keptSessions, claims, workspaces, limits, log } = deps
  return (
    keptSessions && createDurability({ ...keptSessions, claims, workspaces, idleMs: limits.sessionIdleMs, ...own, log })
  )
}

const roomOf = (limits: WorkerLimits) => ({
  sessions: { max: limits.sessionsPerWorker, maxPerTenant: limits.sessionsPerTenant },
  memory: { max: limits.sessionMemoryBytes, maxPerTenant: limits.sessionMemoryBytes * limits.tenantShare },
})

function logFailure(cause: unknown, log: Log): void {
  log.error('the data of an ended run or session could not be removed', { cause })
}

const askTimes = ({ permissionTimeoutMs: permission, clientToolTimeoutMs: tool_call }: WorkerLimits): AskTimes => ({
  permission,
  tool_call,
})

const MAX_TOOL_OUTPUT_CHARS = 64 * 1024

/** How the runs of messages and one-shot runs are prepared. */
function createPrepare(deps: WorkerDeps): {
  prepareRun: PrepareRun
  prepareOneShot: PrepareOneShot
  firstCallOf: FirstCallOf
} {
  const { workspaces, models, toolBox, schemas, permissions, stored, limits } = deps
  const { keptSessions, planQueue, fence, log, metrics, reporter } = deps
  const { kept } = workspaces
  const keepsOneShots = keptSessions?.marks !== undefined
  const prepareRun = createPrepareRun({
    models,
    tools: { toolBox, ...createFenceGuard(fence, metrics), maxOutputChars: MAX_TOOL_OUTPUT_CHARS },
    openAskFor: createPermissionRequester(permissions, askTimes(limits), { metrics, reporter, log }),
    workspaceOf: ({ tenant, workspace, sessionId }) =>
      sessionId !== undefined || keepsOneShots
        ? workspaces.openKept(tenant, workspace)
        : workspaces.open(tenant, workspace),
    files: kept && {
      keepsOneShots,
      bring: ({ tenant, workspace }) => kept.bring(tenant, workspace),
      keep: (run, events) => keepFiles(run, events, { kept, log }),
      ...(keptSessions && { store: (run) => storeEffects(run, { kept, log }) }),
    },
    readFile: stored && ((tenant, { file_id }) => stored.files.read(tenant, file_id)),
    onToolBug: (run, tool, cause) => log.error('a tool failed by a bug', { run_id: run.id, tool, cause }),
    schemas,
    maxTurns: limits.maxTurns,
  })
  const lines = stored && createLines(stored.lines, limits)
  const prepareCustomerRun = createPrepareCustomerRun({ lines, fence, log })
  const firstCallOf = createFirstCallOf(prepareRun, { lines, log })
  return {
    prepareRun,
    prepareOneShot: createPrepareOneShot({ prepareRun, prepareCustomerRun, planQueue }),
    firstCallOf,
  }
}

function createLines(store: LineStore, limits: WorkerLimits): LineCache<CustomerLine, CustomerIdentity> {
  const history = { entries: limits.customerHistoryEntries, chars: limits.customerHistoryChars }
  const cacheLimits = { maxLines: limits.customerEngines, idleMs: limits.customerIdleMs }
  return new LineCache(cacheLimits, (customer) => new CustomerLine(store, history, customer))
}
