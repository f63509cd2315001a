import type { Fence, Inbox, PermissionStore } from '../../shared/broker/port.ts'
import { LineCache } from '../../shared/customers/cache.ts'
import { type CustomerIdentity, CustomerLine, type LineStore } from '../../shared/customers/line.ts'
import type { Log } from '../../shared/log.ts'
import type { Metrics } from '../../shared/metrics.ts'
import type { ModelRoute, PriceOf, WindowOf } from '../../shared/providers/port.ts'
import type { ToolBox } from '../../shared/tools/port.ts'
import { createCustomerRuns } from './customers.ts'
import { createInbox } from './inbox.ts'
import { createOneShots, type PlanQueue } from './one-shots.ts'
import { createPermissionRequester } from './permission-requester.ts'
import { createPrepareRun, type PrepareRun } from './prepare-run.ts'
import { Runs } from './runs.ts'
import type { Session, SessionState } from './session.ts'
import { Sessions } from './sessions.ts'
import { createWorkspaces, type Workspaces } from './workspaces.ts'

export type WorkerLimits = {
  runsPerWorker: number
  runResumeMs: number
  sessionsPerWorker: number
  sessionIdleMs: number
  permissionTimeoutMs: number
  maxTurns: number
  customerEngines: number
  /** Negative: a line is never let go for being idle. */
  customerIdleMs: number
  customerHistoryEntries: number
  customerHistoryChars: number
}

export type WorkerDeps = {
  primary: ModelRoute | undefined
  fallback: ModelRoute | undefined
  toolBox: ToolBox
  priceOf: PriceOf
  windowOf?: WindowOf
  book: PermissionStore
  /** Missing: this server keeps no customers' lines. */
  lineStore: LineStore | undefined
  planQueue: PlanQueue
  fence: Fence
  metrics: Metrics
  workspaceDir: string
  limits: WorkerLimits
  log: Log
}

/** Owns sessions and runs, and hosts the engine. */
export type Worker = {
  inbox: Inbox
  /** Takes nothing new, lets what runs end by itself for `graceMs`, then ends it with `worker_draining`. */
  drain(graceMs: number): Promise<void>
  isDraining(): boolean
  liveRuns(): number
  sessions(): Iterable<Session>
  /** Takes over a session of another worker, with its conversation. */
  adopt(state: SessionState): void
  /** The session is another worker's now. */
  release(session: Session): void
  /** Ends everything at once: it is another's, or nobody's. */
  abortAll(): void
  /** Told of each session that is gone, however it went. */
  onSessionRemoved: (session: Session) => void
}

const MAX_JOURNAL_BYTES = 64 * 1024 * 1024
const MAX_TOOL_OUTPUT_CHARS = 64 * 1024

export function createWorker(deps: WorkerDeps): Worker {
  const { limits, metrics } = deps
  const workspaces = createWorkspaces(deps.workspaceDir)
  const { runs, sessions } = openScopes(deps, workspaces, (session) => worker.onSessionRemoved(session))
  metrics.gauge('runs', () => runs.countByStatus())
  metrics.gauge('sessions', () => sessions.count)
  const startEngine = openEngine(deps, workspaces)
  const lines = openLines(deps.lineStore, limits)
  const customers = createCustomerRuns({ startEngine, lines, fence: deps.fence, log: deps.log })
  const startOneShot = createOneShots({ startEngine, customers, planQueue: deps.planQueue })

  let isDraining = false
  const worker: Worker = {
    inbox: createInbox({ runs, sessions, startEngine, startOneShot, isDraining: () => isDraining }),
    async drain(graceMs) {
      isDraining = true
      await endAll(runs, graceMs)
    },
    isDraining: () => isDraining,
    liveRuns: () => runs.live.size,
    sessions: () => sessions.all(),
    adopt(state) {
      workspaces.open(state.tenant, state.id) // Its folder is where the worker before left it.
      sessions.adopt(state)
    },
    release: (session) => sessions.release(session),
    abortAll() {
      for (const run of runs.live) run.cancel('worker_lost')
      sessions.releaseAll()
    },
    onSessionRemoved: () => {},
  }
  return worker
}

/** Runs and sessions, which take what is left of them along when they go. */
function openScopes(
  { book, limits, log, metrics }: WorkerDeps,
  workspaces: Workspaces,
  onSessionRemoved: (session: Session) => void,
): { runs: Runs; sessions: Sessions } {
  const settle = (work: Promise<void>) => {
    work.catch((cause: unknown) => log.error('what was left of a run or session was not removed', { cause }))
  }
  const runs = new Runs(
    { maxLive: limits.runsPerWorker, resumeMs: limits.runResumeMs, maxJournalBytes: MAX_JOURNAL_BYTES },
    {
      onBug: ({ id }, cause) => log.error('a run failed by a bug', { run_id: id, cause }),
      onEvent: () => metrics.count('events'),
      onForgotten(run) {
        settle(book.forget(run.tenant, run.scopeId, run.id))
        if (run.sessionId === undefined) settle(workspaces.remove(run.tenant, run.id))
      },
    },
  )
  const sessions = new Sessions({ maxSessions: limits.sessionsPerWorker, idleMs: limits.sessionIdleMs }, (session) => {
    onSessionRemoved(session)
    settle(book.forget(session.tenant, session.id))
    settle(workspaces.remove(session.tenant, session.id))
  })
  return { runs, sessions }
}

function openEngine(deps: WorkerDeps, workspaces: Workspaces): PrepareRun {
  const { book, limits, log, metrics } = deps
  return createPrepareRun({
    primary: deps.primary,
    ...(deps.fallback && { fallback: deps.fallback }),
    toolBox: deps.toolBox,
    priceOf: deps.priceOf,
    ...(deps.windowOf && { windowOf: deps.windowOf }),
    openAskFor: createPermissionRequester(book, limits.permissionTimeoutMs, metrics),
    canAct: createCanAct(deps.fence, metrics),
    workspaceOf: ({ tenant, scopeId }) => workspaces.open(tenant, scopeId),
    maxTurns: limits.maxTurns,
    maxToolOutputChars: MAX_TOOL_OUTPUT_CHARS,
    onToolBug: (run, toolName, cause) => log.error('a tool failed by a bug', { run_id: run.id, tool: toolName, cause }),
  })
}

function openLines(
  store: LineStore | undefined,
  limits: WorkerLimits,
): LineCache<CustomerLine, CustomerIdentity> | undefined {
  if (!store) return undefined
  const history = { entries: limits.customerHistoryEntries, chars: limits.customerHistoryChars }
  const cacheLimits = { maxLines: limits.customerEngines, idleMs: limits.customerIdleMs }
  return new LineCache(cacheLimits, (who) => new CustomerLine(store, history, who))
}

/** Whoever may have been replaced waits until it knows: either the lease is renewed, or its runs are ended (design §4.6). */
function createCanAct(fence: Fence, metrics: Metrics): (signal: AbortSignal) => Promise<boolean> {
  return async (signal) => {
    while (!fence.isHeld() && !signal.aborted) {
      metrics.count('fence_refusals')
      await fence.whenHeld(signal)
    }
    return !signal.aborted
  }
}

async function endAll({ live }: Runs, graceMs: number): Promise<void> {
  const all = Promise.all([...live].map(({ ended }) => ended))
  const cut = setTimeout(() => {
    for (const run of live) run.cancel('worker_draining')
  }, graceMs)
  await all
  clearTimeout(cut)
}
