import { once } from 'node:events'
import { Executor } from '../../services/executor/executor.ts'
import type { SourceState } from '../../shared/cluster/following/port.ts'
import type { QueuedRunSource } from '../../shared/cluster/following/queue-places.ts'
import { errorEvent, type RunEvent } from '../../shared/kernel/events.ts'
import { newTraceId, runIdOf } from '../../shared/kernel/ids.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { NO_EVENTS } from '../../shared/tenancy/events/port.ts'
import type { CancelCode } from '../../shared/work/runs/run-identity.ts'
import { createWorkspaces } from '../../shared/work/runs/workspaces.ts'
import { SILENT_LOG } from './silent-log.ts'

const EXECUTOR_DEPS = {
  limits: { maxRuns: 102, runResumeMs: 60_000 },
  isHeapHigh: () => false,
  events: NO_EVENTS,
  usage: { add: () => {} },
  workspaces: createWorkspaces('/nowhere'),
  metrics: NO_METRICS,
  log: SILENT_LOG,
}

/** An executor whose jobs are the runs that the test opens. */
export async function createDemoExecutor(): Promise<Executor> {
  const executor = new Executor(EXECUTOR_DEPS)
  const drain = async () => void (await Promise.all(Array.from(executor.runs.live, ({ ended }) => ended)))
  const none = async () => {}
  await executor.start(
    async () => ({ drain, close: none, owners: async () => [], reclaim: none }),
    [{ kind: 'flow', slots: { max: 1, maxPerTenant: 1 }, handle: none, givenUp: none }],
    { epoch: () => 1, executors: { isAlive: async () => true } },
  )
  return executor
}

/** The queued runs as a store knows them. A test changes their states. */
export function createRunTable() {
  const runs = new Map<string, { tenant: TenantId; state: SourceState }>()
  let lookUps = 0
  const source: QueuedRunSource = {
    async find(tenant, runId) {
      lookUps++
      const run = runs.get(runId)
      return run?.tenant === tenant ? run.state : undefined
    },
    async cancelWaiting(tenant, runId) {
      if (runs.get(runId)?.state.state !== 'waiting') return false
      runs.set(runId, { tenant, state: { state: 'ended', epoch: null, code: 'cancelled' } })
      return true
    },
  }
  const set = (tenant: TenantId, runId: string, state: SourceState) => void runs.set(runId, { tenant, state })
  return {
    source,
    set,
    /** Queues a run and returns its id. */
    queue(tenant: TenantId): string {
      const runId = runIdOf(newTraceId())
      set(tenant, runId, { state: 'waiting', started_at: new Date().toISOString() })
      return runId
    },
    get lookUps() {
      return lookUps
    },
  }
}

/** Begins a run that emits one event, and its `result` when it is finished. */
export function beginRun(executor: Executor, tenant: TenantId, runId: string): { finish(): void } {
  const finishing = Promise.withResolvers<void>()
  const run = executor.runs.open({ id: runId, tenant, sessionId: undefined })
  void run.execute(async function* (_run, signal) {
    yield STARTED
    await Promise.race([finishing.promise, signal.aborted || once(signal, 'abort')])
    yield signal.aborted ? errorEvent(signal.reason as CancelCode, 'ended') : RESULT
  })
  return { finish: finishing.resolve }
}

const STARTED: RunEvent = {
  type: 'started',
  at: '2026-01-01T00:00:00.000Z',
  trace_id: 'trace_1',
  flow_id: 'f',
  flow_version: 1,
  provider_instance: 'p',
  model: 'm',
}

const RESULT: RunEvent = {
  type: 'result',
  at: '2026-01-01T00:00:01.000Z',
  flow_id: 'f',
  flow_version: 1,
  trace_id: 'trace_1',
  verdict: 'ok',
  output: { a: 1 },
  served_instance: 'p',
}
