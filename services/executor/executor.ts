import { listFolder, readPiece } from '../../shared/agent/tools/workspace/listing.ts'
import type { RunInbox } from '../../shared/cluster/commands/inbox.ts'
import { countLoads } from '../../shared/cluster/commands/tenant-loads.ts'
import { noRun } from '../../shared/cluster/following/run-finder.ts'
import type { KnownExecutors } from '../../shared/cluster/members/executors.ts'
import { withDeadline } from '../../shared/kernel/async/deadline.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { EventSink } from '../../shared/tenancy/events/port.ts'
import type { UsageSink } from '../../shared/tenancy/usage/recorder.ts'
import type { Consume, JobConsumer, JobHandler, JobKind } from '../../shared/work/queue/port.ts'
import type { SlotLimits } from '../../shared/work/queue/slots.ts'
import type { RunRecorder } from '../../shared/work/runs/records/recorder.ts'
import { announceRuns } from '../../shared/work/runs/run-events.ts'
import { RunReporter } from '../../shared/work/runs/run-report.ts'
import { Runs } from '../../shared/work/runs/runs.ts'
import type { Workspaces } from '../../shared/work/runs/workspaces.ts'
import type { IsHeapHigh } from '../http/heap.ts'
import { LiveSteps } from './live-steps.ts'

export type ExecutorDeps = {
  limits: { maxRuns: number; runResumeMs: number }
  workspaces: Pick<Workspaces, 'open' | 'openKept' | 'kept' | 'release' | 'remove'>
  isHeapHigh: IsHeapHigh
  events: EventSink
  usage: UsageSink
  recorder?: Pick<RunRecorder, 'begin'>
  metrics: Metrics
  log: Log
}

/** This executor among the others. */
type Joined = { epoch(): number; executors: Pick<KnownExecutors, 'isAlive'> }

/** Handles the jobs of one kind. */
export type JobWork = { kind: JobKind; slots: SlotLimits; handle: JobHandler; givenUp: JobHandler }

const MAX_JOURNAL_BYTES = 64 * 1024 * 1024
/** Time for ended runs to be recorded. */
const ENDING_MS = 2_000

/** Takes jobs from the queue and executes them as runs, which gateways follow like those of a worker. */
export class Executor {
  readonly runs: Runs
  readonly steps = new LiveSteps()
  readonly #deps: ExecutorDeps
  readonly #consumers: JobConsumer[] = []
  readonly #draining = new AbortController()

  constructor(deps: ExecutorDeps) {
    this.#deps = deps
    const { limits, workspaces, events, usage, recorder, metrics, log } = deps
    const runLimits = {
      maxLive: limits.maxRuns,
      resumeMs: limits.runResumeMs,
      maxJournalBytes: MAX_JOURNAL_BYTES,
    }
    const reporter = new RunReporter({ log, metrics, usage, recorder })
    this.runs = new Runs(runLimits, {
      onBug: ({ id }, cause) => log.error('a run failed by a bug', { run_id: id, cause }),
      onEvent: () => metrics.count('events'),
      report: (run) => reporter.openRun(run),
      ...announcingFlows(announceRuns(events)),
      onForgotten({ id, tenant, kind }) {
        if (kind === 'plan') return // A plan's folder is removed only at the plan's end, because another executor may continue the plan.
        workspaces.remove(tenant, id)?.catch((cause: unknown) => {
          log.error('the folder of an ended run could not be removed', { run_id: id, cause })
        })
      },
    })
  }

  /** The commands of gateways. */
  get inbox(): RunInbox {
    const { runs, steps } = this
    return {
      listRuns: (tenant, filter) => runs.list(tenant, filter),
      listTenants: (range) => countLoads({ runs: runs.live, sessions: [] }, range),
      getRun: (tenant, runId) => steps.describe(tenant, runId) ?? runs.get(tenant, runId).description,
      followRun: (tenant, runId, after) => (steps.get(tenant, runId) ?? runs.get(tenant, runId)).follow(after),
      cancelRun: (tenant, runId) => runs.get(tenant, runId).cancel('cancelled'),
      listFiles: async (tenant, runId, page) => listFolder(await this.#folderOf(tenant, runId), page),
      readFile: async (tenant, runId, part) => readPiece(await this.#folderOf(tenant, runId), part),
    }
  }

  /** The folder of a flow's run, or of a running plan. */
  async #folderOf(tenant: TenantId, runId: string): Promise<string> {
    const run = this.runs.get(tenant, runId)
    const { workspaces } = this.#deps
    if (run.kind !== 'plan') return workspaces.open(tenant, runId)
    if (!run.isEnded) await workspaces.kept?.bring(tenant, runId)
    if (!run.isEnded) return workspaces.openKept(tenant, runId)
    workspaces.release(tenant, runId) // The run ended while its files were being fetched.
    throw noRun(runId)
  }

  /** Aborted when this executor shuts down. */
  get draining(): AbortSignal {
    return this.#draining.signal
  }

  /** Begins to take jobs, with the epoch that this executor then has. It also takes the jobs of dead executors. */
  async start(consume: Consume, works: readonly JobWork[], membership: Joined): Promise<void> {
    const { epoch, executors } = membership
    const mayGrow = () => !this.#deps.isHeapHigh()
    for (const { kind, slots, handle, givenUp: onGivenUp } of works) {
      const owner = () => String(epoch())
      const options = { owner, concurrency: slots.max, perTenant: slots.maxPerTenant, mayGrow, onGivenUp }
      this.#consumers.push(await consume(kind, handle, options))
    }
    await this.#reclaimOfDead(executors).catch((cause: unknown) => this.#warnOfDelay({ cause }))
  }

  liveRuns(): number {
    return this.runs.live.size
  }

  isDraining(): boolean {
    return this.#draining.signal.aborted
  }

  /**
   * Takes no further job. Runs that have not ended after `graceMs` end with `worker_draining`. Resolves when all jobs have ended, or
   * shortly after `graceMs`: the next process handles a job that still waits for the store or for another executor.
   */
  async drain(graceMs: number): Promise<void> {
    this.#draining.abort()
    const grace = setTimeout(() => this.#endRuns('worker_draining'), graceMs)
    const drained = Promise.all(this.#consumers.map((consumer) => consumer.drain()))
    const late = () => new Error(`some jobs have not ended ${ENDING_MS} ms after their runs`)
    await withDeadline(drained, graceMs + ENDING_MS, late).catch((cause: unknown) => {
      this.#deps.log.warn('the executor leaves jobs behind', { cause })
    })
    clearTimeout(grace)
  }

  /**
   * Call it when a member has died: the jobs of a dead executor are then handed out again at once. Without this call
   * the queue does so within 16 s.
   */
  onMemberLost(epoch: number): void {
    for (const consumer of this.#consumers)
      consumer.reclaim(String(epoch)).catch((cause: unknown) => this.#warnOfDelay({ epoch, cause }))
  }

  /** This process gets no message about executors that were lost before it took jobs. */
  async #reclaimOfDead(executors: Joined['executors']): Promise<void> {
    for (const consumer of this.#consumers)
      for (const owner of await consumer.owners())
        if (!(await executors.isAlive(Number(owner)))) await consumer.reclaim(owner)
  }

  #warnOfDelay(fields: { epoch?: number; cause: unknown }): void {
    this.#deps.log.warn('the jobs of a dead executor are handed out late', fields)
  }

  /** Ends all runs, because this process owns none of them any more. */
  abortAll(): void {
    this.#endRuns('worker_lost')
  }

  #endRuns(code: 'worker_draining' | 'worker_lost'): void {
    for (const run of this.runs.live) run.cancel(code)
  }
}

type Announcing = ReturnType<typeof announceRuns>

/** A plan has events of its own: its run in this process is only a part of it. */
function announcingFlows({ onStarted, onEnded }: Announcing): Pick<Announcing, 'onStarted' | 'onEnded'> {
  return {
    onStarted: (run) => run.kind === 'flow' && onStarted(run),
    onEnded: (run, last) => run.kind === 'flow' && onEnded(run, last),
  }
}
