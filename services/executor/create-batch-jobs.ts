import type { Settings } from '../../shared/platform/config/groups.ts'
import type { OpenedTenantConfig } from '../wiring/open-tenant-config.ts'
import { BatchJobs } from './batch-jobs.ts'
import { BatchWaves, type WavesDeps } from './batch-waves.ts'
import type { Executor } from './executor.ts'
import type { FlowJobs } from './flow-jobs.ts'
import type { ExecutorParts, Membership } from './open-parts.ts'
import { tellingBatches } from './publish-ends.ts'
import { patientChecks } from './unhurried-flows.ts'

type BatchSettings = Pick<Settings['executor'], 'hasDispatchStore'>
type BatchParts = ExecutorParts & { executor: Executor; tenantConfig: OpenedTenantConfig; flowJobs: FlowJobs }

/** Opens the jobs that run the items of batches, with the batch endpoints of the tenants' instances. */
export function createBatchJobs(
  { hasDispatchStore: keepsHistory }: BatchSettings,
  { flows: parts, store, tenantConfig, executor, flowJobs: flows, tools, events, log }: BatchParts,
  membership: Pick<Membership, 'epoch' | 'executors'>,
): BatchJobs {
  const { configs, limits, outbox } = tenantConfig
  const { batches, files } = store
  const shared = { ...parts, batches, checkers: patientChecks(parts.schemas), flows, now: () => new Date(), log }
  return new BatchJobs({
    ...{ ...shared, files, configs, keepsHistory },
    waves: new BatchWaves({
      ...{ ...shared, ...membership, toolBox: tools.toolBox },
      openVendor: vendorsOf(tenantConfig),
      assertBudget: limits.assertBudget,
    }),
    admission: limits.admission,
    tell: tellingBatches({ events, outbox }),
    runs: executor.runs,
    draining: executor.draining,
  })
}

/** The batch endpoints of a tenant's instance; `undefined` where its key cannot be read, too: its live calls say so. */
const vendorsOf =
  ({ configs, credentials, openBatches }: OpenedTenantConfig): WavesDeps['openVendor'] =>
  async (tenant, name) => {
    const config = await configs.get(tenant)
    const instance = config.instances.find((each) => each.name === name)
    try {
      return instance && openBatches(instance, credentials.read(tenant, instance, config))
    } catch {
      return undefined
    }
  }
