import type { Broker } from '../../shared/cluster/commands/broker.ts'
import type { QueuedRunSource } from '../../shared/cluster/following/queue-places.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { type Audit, EMPTY_CONFIG } from '../../shared/tenancy/tenant-config/config.ts'
import { createFlowRuns } from '../../shared/work/flows/calls/flow-runs.ts'
import { createPlanRuns, createStepRuns } from '../../shared/work/plans/plan-runs.ts'
import type { JobQueue } from '../../shared/work/queue/port.ts'
import { EndQueue } from '../../shared/work/runs/records/end-queue.ts'
import { type LostRunsDeps, recordLostRuns } from '../../shared/work/runs/records/lost-runs.ts'
import { createRecordedBroker } from '../../shared/work/runs/records/recorded-broker.ts'
import { RunRecorder } from '../../shared/work/runs/records/recorder.ts'
import { RunHistory } from '../../shared/work/runs/records/run-history.ts'
import { RunWitness } from '../../shared/work/runs/records/run-witness.ts'
import type { RunRecordStore } from '../../shared/work/runs/records/store.ts'
import type { OpenedStore } from './open-store.ts'
import type { OpenedTenantConfig } from './open-tenant-config.ts'

type Recorded = {
  store: Pick<OpenedStore, 'runRecords'> & Partial<Pick<OpenedStore, 'busySessions'>>
  tenantConfig: Pick<OpenedTenantConfig, 'configs'> | undefined
}
type RecorderParts = Recorded & { metrics: Metrics; log: Log }

/**
 * A longer pause makes larger writes, which cost less for each record. But until its record is written, an ended run is listed before the recorded
 * ones, and in the standalone form its outcome is known only to this process.
 */
const TIMES = {
  standalone: { batchMs: 50, stepWaitMs: 50, openAfterMs: 250 },
  cluster: { batchMs: 100, stepWaitMs: 250, openAfterMs: 250 },
}

/** Opens the recorder of the runs of a process in the cluster; `epoch` identifies the process. */
export const openRunRecorder = ({ store, tenantConfig, ...parts }: RecorderParts, epoch: () => number): RunRecorder =>
  new RunRecorder({
    store: store.runRecords,
    auditOf: auditOf(tenantConfig),
    owner: () => String(epoch()),
    ...TIMES.cluster,
    ...parts,
  })

/** The same for the only process of the standalone form. It also records the runs that its predecessor lost. */
export async function openLocalRunRecorder({ store, tenantConfig, ...parts }: RecorderParts): Promise<RunRecorder> {
  await recordLost({ store, tenantConfig }, async () => true)
  const owner = String(Date.now())
  return new RunRecorder({
    store: store.runRecords,
    auditOf: auditOf(tenantConfig),
    owner: () => owner,
    ...TIMES.standalone,
    ...parts,
  })
}

type BrokerParts = { broker: Broker; tenantConfig: Recorded['tenantConfig']; witness?: RunWitness | undefined }

/** The broker of a gateway, which also finds recorded runs and stored sessions. */
export function openRecordedBroker(
  store: Pick<OpenedStore, 'runRecords' | 'sessions'> | undefined,
  { broker, tenantConfig, witness }: BrokerParts,
): Broker {
  const retentionDays = retentionDaysOf(tenantConfig)
  const history = new RunHistory({ store: store?.runRecords ?? NO_RECORDS, retentionDays })
  return createRecordedBroker(broker, { history, witness, sessions: store?.sessions })
}

type WitnessParts = Recorded & { metrics: Metrics; log: Log }

/** Opens the recorder of runs whose end this gateway has delivered but whose worker has died. */
export function openRunWitness({ store, tenantConfig, ...parts }: WitnessParts): RunWitness {
  return new RunWitness({
    ends: new EndQueue({ store: store.runRecords, auditOf: auditOf(tenantConfig), ...TIMES.cluster, ...parts }),
  })
}

/** Records the ends of runs whose process is gone. */
export const recordLost = ({ store, tenantConfig }: Recorded, isGone: LostRunsDeps['isGone']): Promise<number> =>
  recordLostRuns({
    store: store.runRecords,
    isGone,
    goesOn: ({ kind }) => (kind === 'message' || kind === 'run') && store.busySessions !== undefined,
    retentionDays: retentionDaysOf(tenantConfig),
    now: () => new Date(),
  })

const auditOf = (tenantConfig: Recorded['tenantConfig']) => async (tenant: TenantId) =>
  ((await tenantConfig?.configs.get(tenant)) ?? EMPTY_CONFIG).audit

function retentionDaysOf(tenantConfig: Recorded['tenantConfig']): (tenant: TenantId) => Promise<number> {
  const read: (tenant: TenantId) => Promise<Audit> = auditOf(tenantConfig)
  return async (tenant) => (await read(tenant)).retention_days
}

const NO_RECORDS: Pick<RunRecordStore, 'get' | 'page' | 'frames'> = {
  get: async () => undefined,
  page: async () => [],
  frames: async () => undefined,
}

/** The sources that find queued runs of flows and plans in the store. */
export const createRunSources = (
  { dispatches, plans }: Pick<OpenedStore, 'dispatches' | 'plans'>,
  queue: JobQueue,
): QueuedRunSource[] => [
  createFlowRuns({ dispatches, queue }),
  createPlanRuns({ plans, now: () => new Date() }),
  createStepRuns({ plans }),
]
