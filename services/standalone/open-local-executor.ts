import type { ToolBox } from '../../shared/agent/tools/port.ts'
import type { KnownExecutors } from '../../shared/cluster/members/executors.ts'
import { ALWAYS_HELD } from '../../shared/cluster/members/fence.ts'
import { createLocalQueue, type LocalQueue } from '../../shared/cluster/memory.ts'
import type { BegunRun } from '../../shared/cluster/relay/worker/executor.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'
import type { EventSink } from '../../shared/tenancy/events/port.ts'
import type { MemoryQueue } from '../../shared/work/queue/memory.ts'
import { MemorySchedules } from '../../shared/work/queue/memory-schedules.ts'
import type { RunRecorder } from '../../shared/work/runs/records/recorder.ts'
import { openExecutor } from '../executor/open-executor.ts'
import type { IsHeapHigh } from '../http/heap.ts'
import { createFlows } from '../wiring/create-flows.ts'
import type { OpenedStore } from '../wiring/open-store.ts'
import type { OpenedTenantConfig } from '../wiring/open-tenant-config.ts'
import { createRunSources } from '../wiring/run-records.ts'

type Parts = {
  store: OpenedStore
  tenantConfig: OpenedTenantConfig | undefined
  events: EventSink
  recorder: RunRecorder
  toolBox: ToolBox
  schemas: SchemaCheckers
  queue: MemoryQueue
  isHeapHigh: IsHeapHigh
  metrics: Metrics
  log: Log
}

type LocalExecutor = {
  schedules: MemorySchedules
  localQueue: LocalQueue
  executors: KnownExecutors
  liveRuns(): number
  /** Begins to take jobs, first those that an earlier process left unfinished. */
  start(): Promise<void>
  drain(graceMs: number): Promise<void>
  close(): Promise<void>
}

/** Opens the executor of the standalone form, which takes its jobs from a queue within the process. */
export async function openLocalExecutor(
  settings: Settings['executor'],
  { store, tenantConfig, events, recorder, toolBox, schemas, queue, isHeapHigh, metrics, log }: Parts,
): Promise<LocalExecutor> {
  const epoch = Date.now() // Each start counts as a new executor: jobs that an earlier one was executing are lost.
  const onProblem = (message: string, cause: unknown) => log.warn(message, { cause })
  const schedules = new MemorySchedules({ queue, onProblem })
  const flows = createFlows({ store, events, toolBox, schemas, configs: tenantConfig?.configs })
  const shared = { store, tenantConfig, events, recorder, toolBox, queue, schedules, isHeapHigh, metrics, log }
  const opened = await openExecutor(settings, { ...shared, flows, fence: ALWAYS_HELD })
  const { executor } = opened
  const localQueue = createLocalQueue(executor.inbox, epoch, createRunSources(store, queue))
  const executors: KnownExecutors = {
    hasAny: () => !executor.isDraining(),
    isAlive: async (other) => other === epoch,
  }
  const announce = ({ id }: BegunRun) => localQueue.runs.waiting.onStarted(id, epoch)
  return {
    schedules,
    localQueue,
    executors,
    liveRuns: () => executor.liveRuns(),
    start: () => opened.start(queue.consume, { epoch: () => epoch, announce, executors, isMember: async () => true }),
    drain: (graceMs) => executor.drain(graceMs),
    async close() {
      await opened.close()
      await schedules.close()
      await queue.close()
    },
  }
}
