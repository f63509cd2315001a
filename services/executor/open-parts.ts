import type { Fence } from '../../shared/broker/port.ts'
import type { Tools } from '../../shared/engine/resources.ts'
import type { Executors } from '../../shared/flows/calls/settle.ts'
import type { IsHeapHigh } from '../../shared/limits/heap.ts'
import type { Log } from '../../shared/log.ts'
import type { Metrics } from '../../shared/metrics.ts'
import type { JobQueue, Schedules } from '../../shared/queue/port.ts'
import type { ToolBox } from '../../shared/tools/port.ts'
import type { Workspaces } from '../runs/workspaces.ts'
import type { OpenedFlows } from '../wiring/flows.ts'
import type { OpenedStore } from '../wiring/store.ts'
import type { OpenedTenantConfig } from '../wiring/tenant-config.ts'

/** The parts of the process that an executor uses. */
export type OpenParts = {
  flows: OpenedFlows
  store: OpenedStore
  /** `undefined`: runtime configuration is disabled, so no flow can call a provider. */
  tenantConfig: OpenedTenantConfig | undefined
  toolBox: ToolBox
  queue: JobQueue
  schedules: Schedules
  fence: Fence
  isHeapHigh: IsHeapHigh
  metrics: Metrics
  log: Log
}

/** `tools` are those that ask nobody. */
export type ExecutorParts = OpenParts & {
  tools: Pick<Tools, 'toolBox' | 'maxOutputChars' | 'canAct' | 'mayAct'>
  workspaces: Pick<Workspaces, 'open' | 'remove'>
}

/** This executor among the others. */
export type Membership = { epoch(): number; announce(runId: string): void; executors: Pick<Executors, 'isAlive'> }
