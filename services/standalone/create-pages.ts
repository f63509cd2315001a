import type { RunInbox } from '../../shared/cluster/commands/inbox.ts'
import { mergeLoads, type TenantRange } from '../../shared/cluster/commands/tenant-loads.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { OpsPages } from '../ops/open-ops.ts'
import { ownProcess } from '../wiring/process.ts'
import { tenantsPage } from '../wiring/tenants-page.ts'
import type { Worker } from '../worker/worker.ts'

type Parts = Omit<Parameters<typeof tenantsPage>[0], 'loads'> & {
  worker: Pick<Worker, 'liveRuns' | 'isDraining' | 'inbox'>
  executor: { liveRuns(): number; localQueue: { inbox: Pick<RunInbox, 'listTenants'> } }
}

/** The sources of the ops listener's pages in the standalone form. */
export function createPages(
  { runsPerWorker }: Pick<Settings['process'], 'runsPerWorker'>,
  { worker, executor, ...parts }: Parts,
): OpsPages {
  const { pid, about } = ownProcess.asMember(runsPerWorker)
  const self = () => ({
    role: 'standalone' as const,
    state: worker.isDraining() ? ('draining' as const) : ('active' as const),
    load: worker.liveRuns() + executor.liveRuns(),
    ...about,
    ...{ pid, epoch: pid, expiresInMs: null },
  })
  const inboxes = [worker.inbox, executor.localQueue.inbox]
  const loads = async (range: TenantRange) => ({
    tenants: mergeLoads(
      inboxes.map((inbox) => inbox.listTenants(range)),
      range,
    ),
    isIncomplete: false,
  })
  return { members: async () => ({ members: [self()] }), ...tenantsPage({ loads, ...parts }) }
}
