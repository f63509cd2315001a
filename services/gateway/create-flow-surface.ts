import type { Files } from '../../shared/agent/files/files.ts'
import type { ToolBox } from '../../shared/agent/tools/port.ts'
import type { Broker } from '../../shared/cluster/commands/broker.ts'
import type { KnownExecutors } from '../../shared/cluster/members/executors.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'
import type { JoinableKeys } from '../../shared/platform/store/idempotency.ts'
import type { EventSink } from '../../shared/tenancy/events/port.ts'
import { UsageReport } from '../../shared/tenancy/usage/report.ts'
import { BatchCalls } from '../../shared/work/flows/batch/calls.ts'
import type { BatchStore } from '../../shared/work/flows/batch/store.ts'
import { FlowCalls } from '../../shared/work/flows/calls/calls.ts'
import { estimateFlow } from '../../shared/work/flows/calls/estimate-flow.ts'
import { FlowChecks } from '../../shared/work/flows/check/check.ts'
import { FlowEvaluator } from '../../shared/work/flows/evaluate/evaluate.ts'
import type { FlowEvaluationStore } from '../../shared/work/flows/evaluate/evaluation-store.ts'
import { EvaluationHistory } from '../../shared/work/flows/evaluate/history.ts'
import { loadFlows } from '../../shared/work/flows/folder.ts'
import type { JobQueue } from '../../shared/work/queue/port.ts'
import { createFlows, type FlowParts } from '../wiring/create-flows.ts'
import type { OpenedStore } from '../wiring/open-store.ts'
import type { OpenedTenantConfig } from '../wiring/open-tenant-config.ts'
import type { DispatchSurface } from './routes/flows/dispatches.ts'
import type { FlowRunSurface } from './routes/flows/flow-runs.ts'
import type { FlowSurface } from './routes/flows/flows.ts'

type Parts = {
  store: OpenedStore | undefined
  events: EventSink
  toolBox: ToolBox
  schemas: SchemaCheckers
  /** `undefined`: runtime configuration is disabled, so flows can be edited and not run. */
  tenantConfig: Pick<OpenedTenantConfig, 'configs' | 'limits'> | undefined
  queue: JobQueue
  broker: Broker
  executors: KnownExecutors
  log: Log
}

type Surfaces = { flows: FlowSurface; dispatches: DispatchSurface | undefined }

/** Opens the services behind the flow and dispatch endpoints, and loads the flows of FLOWS_DIR. A process without a store has none. */
export async function createFlowSurface(
  { flowsDir, hasDispatchStore }: Settings['flows'],
  { store, events, toolBox, schemas, tenantConfig, log, ...parts }: Parts,
): Promise<Surfaces | undefined> {
  if (!store) return undefined
  const flows = createFlows({ store, events, toolBox, schemas, configs: tenantConfig?.configs })
  const { library, memory, history, compile } = flows
  if (flowsDir !== undefined) {
    const { problems } = await loadFlows(flowsDir, library)
    for (const message of problems) log.warn(message)
  }
  const execution =
    tenantConfig &&
    executionOf(flows, {
      ...tenantConfig,
      evaluations: store.flowEvaluations,
      batches: store.batches,
      idempotency: store.idempotency,
      files: store.files,
      keepsHistory: hasDispatchStore,
      toolBox,
      ...parts,
    })
  const usage = new UsageReport(store.usage)
  const surface = {
    library,
    memory,
    checks: new FlowChecks({ library, memory, compile, checkers: schemas }),
    evaluations: new EvaluationHistory({ library, store: store.flowEvaluations }),
    figures: (tenant: TenantId) => usage.flows(tenant),
    execution,
  }
  return { flows: surface, dispatches: hasDispatchStore ? history : undefined }
}

type ExecutionParts = Pick<Parts, 'queue' | 'broker' | 'executors' | 'toolBox'> &
  Pick<OpenedTenantConfig, 'configs' | 'limits'> & {
    evaluations: FlowEvaluationStore
    batches: BatchStore
    idempotency: JoinableKeys
    files: Files
    keepsHistory: boolean
  }

function executionOf(flows: FlowParts, { limits, evaluations, batches, ...parts }: ExecutionParts): FlowRunSurface {
  const { schemas, history, dispatches, ...services } = flows
  const now = () => new Date()
  const calls = new FlowCalls({
    ...services,
    ...parts,
    admission: limits.admission,
    dispatches,
    checkers: schemas,
    replay: (tenant, traceId) => history.replay(tenant, traceId, { isForCaller: true }),
    now,
  })
  const evaluator = new FlowEvaluator({
    ...services,
    dispatches,
    evaluations,
    execute: (tenant, execution) => calls.execute(tenant, execution),
    now,
  })
  const estimating = { ...services, ...parts, checkers: schemas, ...limits }
  return {
    calls,
    evaluator,
    batches: new BatchCalls({ ...services, ...parts, batches, dispatches, now }),
    estimate: (tenant, call) => estimateFlow(tenant, call, estimating),
  }
}
