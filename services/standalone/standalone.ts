import type { RunInbox } from '../../shared/cluster/commands/inbox.ts'
import { mergeLoads, type TenantRange } from '../../shared/cluster/commands/tenant-loads.ts'
import { ALWAYS_HELD } from '../../shared/cluster/members/fence.ts'
import { createMemoryBroker } from '../../shared/cluster/memory.ts'
import { createMemoryPermissionStore } from '../../shared/cluster/permissions/memory-store.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Closer } from '../../shared/kernel/shutdown.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { MemoryEventLog } from '../../shared/tenancy/events/memory.ts'
import { MemoryQueue } from '../../shared/work/queue/memory.ts'
import { createFlowSurface } from '../gateway/create-flow-surface.ts'
import { createPlanSurface } from '../gateway/create-plan-surface.ts'
import { openHttp } from '../gateway/open-http.ts'
import type { HttpServer } from '../http/server.ts'
import { type OpsPages, openOps } from '../ops/open-ops.ts'
import { createLocalParts } from '../wiring/config-notice.ts'
import { type OpenedStore, openStandaloneStore } from '../wiring/open-store.ts'
import { openTenantConfig } from '../wiring/open-tenant-config.ts'
import { createPlanQueue } from '../wiring/plan-queue.ts'
import { ownProcess } from '../wiring/process.ts'
import { openLocalRunRecorder, openRecordedBroker } from '../wiring/run-records.ts'
import { tenantsPage } from '../wiring/tenants-page.ts'
import { type OpenedWorker, openWorker } from '../worker/open-worker.ts'
import { recoverRuns } from '../worker/recover-runs.ts'
import type { Worker } from '../worker/worker.ts'
import { openLocalExecutor } from './open-local-executor.ts'

/** After DRAIN_SECS: time for the streams to deliver their last frames, and for each later closer. */
const STREAMS_MS = 3_000
const CLOSE_MS = 5_000

/** This process's name among the owners of sessions and runs; an earlier process had a different name. */
const START = String(Date.now())

/** No other process can take this worker's sessions or claim them. */
const ALONE = { fence: ALWAYS_HELD, claims: undefined, owner: () => START }

export type Standalone = { url: string; consoleUrl: string | undefined; opsUrl: string; closers: Closer[] }

/**
 * Opens a gateway, a worker and an executor in one process, connected by the in-process broker and queue. Both listeners accept
 * requests when it resolves.
 */
export async function openStandalone(settings: Settings, log: Log): Promise<Standalone> {
  const { drainMs } = settings.process
  const ops = await openOps(settings.ops, { form: 'standalone', log })
  const { metrics, isHeapHigh } = ops
  const permissions = createMemoryPermissionStore()
  const store = await openStandaloneStore(settings.store)
  const events = new MemoryEventLog()
  const tenantConfig = await openTenantConfig(settings.tenants, { store, ...createLocalParts(), events, metrics, log })
  const queue = ops.watchQueue(openQueue(store, log))
  const planQueue = createPlanQueue(settings.plans, store, { queue, events })
  const stored = { store, recorder: await openLocalRunRecorder({ store, tenantConfig, metrics, log }) }
  const parts = { permissions, stored, metrics, tenantConfig, events, planQueue, isHeapHigh, ...ALONE }
  const { worker, toolBox, schemas, settled, close: closeTools } = await openRecovered(settings.worker, log, parts)
  const shared = { ...stored, events, tenantConfig, toolBox, schemas, queue, log }
  const executor = await openLocalExecutor(settings.executor, { ...shared, ...ops })
  const broker = createMemoryBroker(worker.inbox, permissions, executor.localQueue)
  const flowParts = { ...shared, broker, executors: executor.executors }
  const plans = createPlanSurface(settings, { ...flowParts, schedules: executor.schedules })
  const flows = await createFlowSurface(settings.flows, flowParts)
  const queued = flows && { ...flows, plans }
  const runs = openRecordedBroker(store, { broker, tenantConfig })
  const own = { form: 'standalone', broker: runs, startKeys: store.idempotency, link: undefined } as const
  const http = await openHttp(settings.http, { ...own, events, toolBox, store, log, tenantConfig, ...ops, queued })
  await executor.start()
  ops.show(createPages(settings.process, { worker, executor, store, tenantConfig }))
  ops.ready({})
  const drain = () => drainAll(drainMs, { http, worker, executor, settled })
  return {
    ...{ url: http.url, consoleUrl: http.consoleUrl, opsUrl: ops.url },
    closers: [
      ops.drain,
      { name: 'runs and streams', deadlineMs: drainMs + 2 * STREAMS_MS, close: drain },
      { name: 'queue', deadlineMs: CLOSE_MS, close: executor.close },
      { name: 'tools', deadlineMs: CLOSE_MS, close: closeTools },
      { name: 'tenant configuration', deadlineMs: CLOSE_MS, close: async () => tenantConfig?.close() },
      { name: 'store', deadlineMs: CLOSE_MS, close: () => store.close() },
      ops.close,
    ],
  }
}

/** Opens the worker, which continues the runs that an earlier process left unfinished. */
async function openRecovered(...[settings, log, parts]: Parameters<typeof openWorker>): Promise<OpenedWorker> {
  const opened = await openWorker(settings, log, parts)
  await recoverRuns(parts.stored?.store.busySessions, { inbox: opened.worker.inbox, owner: parts.owner(), log })
  return opened
}

type Draining = {
  http: Pick<HttpServer, 'drain' | 'close'>
  worker: Pick<Worker, 'drain' | 'leaveAtRest'>
  executor: Pick<Worker, 'drain'>
  settled(): Promise<void>
}

/** Worker and executor refuse new work; requests that answer, cancel or follow a run are still served. */
async function drainAll(drainMs: number, { http, worker, executor, settled }: Draining): Promise<void> {
  const startedAt = performance.now()
  http.drain()
  worker.leaveAtRest()
  await Promise.all([worker.drain(drainMs), executor.drain(drainMs)])
  await Promise.all([http.close(STREAMS_MS, drainMs - (performance.now() - startedAt)), settled()])
}

function openQueue({ jobs }: Pick<OpenedStore, 'jobs'>, log: Log): MemoryQueue {
  return new MemoryQueue({ store: jobs, onProblem: (message, cause) => log.warn(message, { cause }) })
}

type Parts = Omit<Parameters<typeof tenantsPage>[0], 'loads'> & {
  worker: Pick<Worker, 'liveRuns' | 'isDraining' | 'inbox'>
  executor: { liveRuns(): number; localQueue: { inbox: Pick<RunInbox, 'listTenants'> } }
}

/** The sources of the ops listener's pages in the standalone form. */
function createPages(
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
