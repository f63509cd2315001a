import { createLocalQueue, type LocalQueue } from '../../shared/broker/memory.ts'
import { ALWAYS_HELD } from '../../shared/broker/port.ts'
import type { Config } from '../../shared/config/config.ts'
import { createFlowRuns } from '../../shared/flows/calls/flow-runs.ts'
import type { Executors } from '../../shared/flows/calls/settle.ts'
import type { Log } from '../../shared/log.ts'
import type { Metrics } from '../../shared/metrics.ts'
import { MemoryQueue } from '../../shared/queue/memory.ts'
import type { SchemaChecker } from '../../shared/schemas/port.ts'
import type { ToolBox } from '../../shared/tools/port.ts'
import { openExecutor } from '../executor/open-executor.ts'
import { openFlows } from '../wiring/flows.ts'
import type { OpenedStore } from '../wiring/store.ts'
import type { OpenedTenantConfig } from '../wiring/tenant-config.ts'

type Parts = {
  store: OpenedStore
  tenantConfig: OpenedTenantConfig | undefined
  toolBox: ToolBox
  schemas: SchemaChecker
  metrics: Metrics
  log: Log
}

type LocalExecutor = {
  queue: MemoryQueue
  localQueue: LocalQueue
  executors: Executors
  /** Begins to take jobs, first those that an earlier process has left. */
  start(): Promise<void>
  drain(graceMs: number): Promise<void>
  close(): Promise<void>
}

/** Opens the executor of the standalone form, and the queue between it and the gateway of the same process. */
export function openLocalExecutor(
  config: Config,
  { store, tenantConfig, toolBox, schemas, metrics, log }: Parts,
): LocalExecutor {
  const epoch = Date.now() // Each start is another executor: what an earlier one was executing is lost.
  const onProblem = (message: string, cause: unknown) => log.warn(message, { cause })
  const queue = new MemoryQueue({ store: store.jobs, onProblem })
  const flows = openFlows({ store, toolBox, schemas, configs: tenantConfig?.configs })
  const opened = openExecutor(config, { flows, store, tenantConfig, toolBox, fence: ALWAYS_HELD, metrics, log })
  const { executor } = opened
  const localQueue = createLocalQueue(executor.inbox, epoch, createFlowRuns({ dispatches: store.dispatches, queue }))
  const executors: Executors = {
    hasAny: () => !executor.isDraining(),
    isAlive: async (other) => other === epoch,
  }
  const announce = (runId: string) => localQueue.runs.onStarted(runId, epoch)
  return {
    queue,
    localQueue,
    executors,
    start: () => opened.start(queue.consume, { epoch: () => epoch, announce, executors }),
    drain: (graceMs) => executor.drain(graceMs),
    async close() {
      opened.close()
      await queue.close()
    },
  }
}
