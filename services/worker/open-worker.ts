import { CallPool } from '../../shared/agent/providers/batch/pool/pool.ts'
import type { ToolBox } from '../../shared/agent/tools/port.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'
import type { EventSink } from '../../shared/tenancy/events/port.ts'
import { NO_ADMISSION } from '../../shared/tenancy/limits/admission.ts'
import { EMPTY_CONFIG } from '../../shared/tenancy/tenant-config/config.ts'
import { UsageRecorder } from '../../shared/tenancy/usage/recorder.ts'
import { createModelSource } from '../wiring/models/create-models.ts'
import { createProbes } from '../wiring/models/create-probes.ts'
import type { OpenedStore } from '../wiring/open-store.ts'
import type { OpenedTenantConfig } from '../wiring/open-tenant-config.ts'
import { openTools } from '../wiring/open-tools.ts'
import { openWorkspaces } from '../wiring/open-workspaces.ts'
import { createDecisionAudit } from './decision-audit.ts'
import { createEventReporter } from './event-reporter.ts'
import { BusyMarks, type BusyMarksDeps } from './sessions/busy-marks.ts'
import { createWorker, type KeptSessions, type Stored, type Worker, type WorkerDeps } from './worker.ts'

/** The parts of a worker that differ between the forms. */
export type WorkerParts = Pick<
  WorkerDeps,
  'permissions' | 'fence' | 'isHeapHigh' | 'metrics' | 'claims' | 'planQueue' | 'turns'
> & {
  /** The name of this process as the owner of sessions with runs. */
  owner(): string
  /** `undefined`: runtime configuration is disabled, and every tenant's runs use the server's models. */
  tenantConfig: OpenedTenantConfig | undefined
  events: EventSink
  /** `undefined`: the worker keeps no customers' lines and no decisions, counts no usage, and records no run. */
  stored: { store: WorkerStore; recorder: Stored['recorder'] } | undefined
}

type WorkerStore = Pick<
  OpenedStore,
  'ledger' | 'memories' | 'sessions' | 'busySessions' | 'decided' | 'usage' | 'files' | 'capabilities' | 'pooled'
>

export type OpenedWorker = {
  worker: Worker
  toolBox: ToolBox
  schemas: SchemaCheckers
  /** Resolves when the facts of ended runs are stored. Call it when all runs have ended. */
  settled(): Promise<void>
  /** Closes the tools and the workspaces. Call it when all runs have ended. */
  close(): Promise<void>
}

/** Opens a worker with its models and tools. */
export async function openWorker(
  { tools, models: modelSettings, limits, workspaces: workspaceSettings }: Settings['worker'],
  log: Log,
  { tenantConfig, events, stored, owner, ...parts }: WorkerParts,
): Promise<OpenedWorker> {
  const store = stored?.store
  const { toolBox, schemas, close } = await openTools(tools, log, store)
  const opening = { sweeps: { storedMs: store?.sessions ? limits.sessionIdleMs : 0 }, onLeft: toolBox.release, log }
  const { workspaces, close: closeWorkspaces } = await openWorkspaces(workspaceSettings, opening)
  const pool = store && new CallPool({ store: store.pooled, now: () => new Date() })
  const models = await createModelSource(modelSettings, tenantConfig, log, pool)
  const auditOf = async (tenant: TenantId) => ((await tenantConfig?.configs.get(tenant)) ?? EMPTY_CONFIG).audit
  const audit = store && createDecisionAudit({ decided: store.decided, auditOf, log })
  const reporter = createEventReporter({ events, outbox: tenantConfig?.outbox, audit, log })
  const usage = store && new UsageRecorder({ store: store.usage, log })
  const worker = createWorker({
    ...parts,
    stored: stored && usage && { ...storedOf(stored, tenantConfig), usage },
    keptSessions: store && keptSessionsOf(store, { owner, claims: parts.claims }),
    models,
    reporter,
    admission: tenantConfig?.limits.admission ?? NO_ADMISSION,
    budgets: tenantConfig?.limits.budgets,
    ...{ toolBox, schemas },
    ...{ workspaces, limits, log },
  })
  return {
    worker,
    toolBox,
    schemas,
    async settled() {
      await Promise.all([reporter.settled(), usage?.close(), worker.sessionsSettled()])
    },
    async close() {
      await closeWorkspaces()
      await close()
    },
  }
}

const storedOf = (
  { store, recorder }: NonNullable<WorkerParts['stored']>,
  tenantConfig: WorkerParts['tenantConfig'],
): Omit<Stored, 'usage'> => ({
  lines: store,
  recorder,
  files: store.files,
  probes: createProbes({ capabilities: store.capabilities, tenantConfig }),
})

const keptSessionsOf = (
  { sessions, busySessions }: WorkerStore,
  own: Pick<BusyMarksDeps, 'owner' | 'claims'>,
): KeptSessions | undefined =>
  sessions && {
    store: sessions,
    marks: busySessions && new BusyMarks({ store: busySessions, logs: sessions, ...own }),
  }
