import type { Tools } from '../../shared/agent/engine/resources.ts'
import type { ToolBox } from '../../shared/agent/tools/port.ts'
import type { KnownExecutors } from '../../shared/cluster/members/executors.ts'
import type { Fence } from '../../shared/cluster/members/fence.ts'
import type { Announce } from '../../shared/cluster/relay/worker/executor.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import type { EventSink } from '../../shared/tenancy/events/port.ts'
import type { UsageSink } from '../../shared/tenancy/usage/recorder.ts'
import type { JobQueue, Schedules } from '../../shared/work/queue/port.ts'
import type { RunRecorder } from '../../shared/work/runs/records/recorder.ts'
import type { Workspaces } from '../../shared/work/runs/workspaces.ts'
import type { IsHeapHigh } from '../http/heap.ts'
import type { FlowParts } from '../wiring/create-flows.ts'
import type { OpenedStore } from '../wiring/open-store.ts'
import type { OpenedTenantConfig } from '../wiring/open-tenant-config.ts'

/** The parts of the process that an executor uses. */
export type OpenParts = {
  flows: FlowParts
  store: OpenedStore
  /** `undefined`: runtime configuration is disabled, so no flow can call a provider. */
  tenantConfig: OpenedTenantConfig | undefined
  events: EventSink
  recorder: RunRecorder
  toolBox: ToolBox
  queue: JobQueue
  schedules: Schedules
  fence: Fence
  isHeapHigh: IsHeapHigh
  metrics: Metrics
  log: Log
}

/** `tools`: the tools that need no permission. */
export type ExecutorParts = OpenParts & {
  tools: Pick<Tools, 'toolBox' | 'maxOutputChars' | 'canAct' | 'mayAct'>
  workspaces: Pick<Workspaces, 'open' | 'openKept' | 'remove' | 'release' | 'kept'>
  usage: UsageSink
}

/** This executor among the others. */
export type Membership = {
  epoch(): number
  announce: Announce
  executors: Pick<KnownExecutors, 'isAlive'>
  /** Whether there is a worker or an executor of this epoch. */
  isMember(epoch: number): Promise<boolean>
}
