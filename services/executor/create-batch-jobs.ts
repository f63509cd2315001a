import { CallPool } from '../../shared/agent/providers/batch/pool/pool.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { OpenedTenantConfig } from '../wiring/open-tenant-config.ts'
import { BatchJobs } from './batch-jobs.ts'
import { BatchWaves } from './batch-waves.ts'
import type { Executor } from './executor.ts'
import type { FlowJobs } from './flow-jobs.ts'
import { tellingBatches } from './job-ends.ts'
import type { ExecutorParts, Membership } from './open-parts.ts'
import { patientChecks } from './unhurried-flows.ts'

type BatchSettings = Pick<Settings['executor'], 'hasDispatchStore'>
type BatchParts = ExecutorParts & { executor: Executor; tenantConfig: OpenedTenantConfig; flowJobs: FlowJobs }

/** Opens the jobs that run the items of batches, with the batch endpoints of the tenants' instances. */
export function createBatchJobs(
  { hasDispatchStore: keepsHistory }: BatchSettings,
  { flows: parts, store, tenantConfig, executor, flowJobs: flows, tools, events, log }: BatchParts,
  membership: Pick<Membership, 'epoch' | 'executors'>,
): BatchJobs {
  const { configs, limits, outbox, openVendor } = tenantConfig
  const { batches, files, pooled } = store
  const now = () => new Date()
  const shared = { ...parts, batches, checkers: patientChecks(parts.schemas), flows, now, log }
  const pool = new CallPool({ store: pooled, now })
  return new BatchJobs({
    ...{ ...shared, files, configs, keepsHistory },
    waves: new BatchWaves({ ...shared, ...membership, pool, toolBox: tools.toolBox, openVendor }),
    admission: limits.admission,
    tell: tellingBatches({ events, outbox }),
    runs: executor.runs,
    draining: executor.draining,
  })
}
