import { Lease } from '../../shared/cluster/members/lease.ts'
import { claimsOf } from '../../shared/cluster/owners/held-claims.ts'
import { openWorkerPermissionStore } from '../../shared/cluster/permissions/redis-store.ts'
import { createRedisPorts } from '../../shared/cluster/redis-ports.ts'
import { WorkerRelay } from '../../shared/cluster/relay/worker/worker.ts'
import { LoopBudget } from '../../shared/kernel/async/loop-budget.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { waitForRedis } from '../../shared/platform/redis/wait-for-redis.ts'
import { openClusterProcess } from '../wiring/cluster-process.ts'
import { openClusterStore } from '../wiring/open-store.ts'
import { createPlanQueue } from '../wiring/plan-queue.ts'
import { type Opened, ownProcess } from '../wiring/process.ts'
import { openRunRecorder } from '../wiring/run-records.ts'
import { openWorker } from './open-worker.ts'
import type { Session } from './sessions/session.ts'

/** How long runs are started in one turn of the event loop. In the standalone form the HTTP server limits this (`http/in-turns.ts`). */
const STARTS_MS = 4

/** A worker of the cluster, which owns sessions and runs and hosts the engine (services/README.md). */
export function openWorkerMember(settings: Settings, log: Log): Promise<Opened> {
  const { drainMs, runsPerWorker } = settings.process
  const opening = { role: 'worker', settings, log, openStore: openClusterStore } as const
  return openClusterProcess(opening, async ({ join, closer, link, queue, ...common }) => {
    const { store, events, tenantConfig, metrics, isHeapHigh } = common
    const lease = new Lease()
    const permissions = await waitForRedis(() => openWorkerPermissionStore(link, ownProcess.pid), { log })
    const planQueue = createPlanQueue(settings.plans, store, { queue, events })
    const recorder = store && openRunRecorder({ store, tenantConfig, metrics, log }, () => relay.epoch)
    const parts = { permissions, fence: lease, isHeapHigh, metrics, tenantConfig, events, planQueue }
    const opened = await openWorker(settings.worker, log, {
      ...parts,
      turns: new LoopBudget(STARTS_MS),
      stored: store && recorder && { store, recorder },
      claims: claimsOf(() => relay),
      owner: () => String(relay.epoch),
    })
    const own = { ...ownProcess.asMember(runsPerWorker), lease, log, metrics }
    const relay: WorkerRelay<Session> = new WorkerRelay(createRedisPorts(link), opened.worker, own)
    await join(relay)
    return {
      relay,
      work: [
        closer('runs', () => relay.drain(drainMs), drainMs),
        closer('webhooks and usage', opened.settled),
        closer('records of runs', () => recorder?.settled()),
      ],
      rest: [],
      closeTools: opened.close,
    }
  })
}
