import type { Config } from '../../shared/platform/config/config.ts'
import type { OpsPages } from '../ops/open-ops.ts'
import { ownProcess } from '../wiring/process.ts'
import type { Worker } from '../worker/worker.ts'

type Parts = {
  worker: Pick<Worker, 'liveRuns' | 'isDraining'>
  executor: { liveRuns(): number }
}

/** What the pages of the ops listener show of the standalone form. */
export function openPages({ runsPerWorker }: Pick<Config, 'runsPerWorker'>, { worker, executor }: Parts): OpsPages {
  const { pid, about } = ownProcess.asMember(runsPerWorker)
  const self = () => ({
    role: 'standalone' as const,
    state: worker.isDraining() ? ('draining' as const) : ('active' as const),
    load: worker.liveRuns() + executor.liveRuns(),
    ...about,
    ...{ pid, epoch: pid, expiresInMs: null },
  })
  return { members: async () => ({ members: [self()] }) }
}
