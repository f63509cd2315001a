import type { RunReader } from '../../shared/cluster/commands/runs.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { createRunTable } from './demo-executor.ts'
import type { TestRelay } from './relay.ts'

/** Two gateways, a worker and two executors, one of which has the runs of the table. */
export async function openQueuedRelay<Link>(relay: TestRelay<Link>) {
  const table = createRunTable()
  await relay.worker()
  const [member, idle] = [await relay.executor(), await relay.executor()]
  const jobs = [table.source]
  const gateways = [await relay.gateway({ jobs }), await relay.gateway({ jobs })] as const
  return {
    relay,
    table,
    member,
    idle,
    gateways,
    executor: {
      epoch: member.epoch,
      executor: member.executor,
      announce(id: string, reader?: RunReader) {
        const ended = reader ? member.executor.runs.get(DEFAULT_TENANT, id).ended : Promise.resolve()
        member.announceStart({ id, tenant: DEFAULT_TENANT, ended }, reader)
      },
    },
    brokers: [gateways[0].broker, gateways[1].broker] as const,
    close: relay.close,
  }
}
