import { Lease } from '../../shared/cluster/members/lease.ts'
import { createRedisPorts } from '../../shared/cluster/redis-ports.ts'
import { ExecutorRelay } from '../../shared/cluster/relay/worker/executor.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import { ConfigError } from '../../shared/platform/config/config.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { redisOf } from '../../shared/platform/config/redis-place.ts'
import { createBullConsume } from '../../shared/work/queue/bullmq-consume.ts'
import { createBullSchedules } from '../../shared/work/queue/bullmq-schedules.ts'
import { openClusterProcess } from '../wiring/cluster-process.ts'
import { createFlows } from '../wiring/create-flows.ts'
import { type OpenedStore, openClusterStore } from '../wiring/open-store.ts'
import { openTools } from '../wiring/open-tools.ts'
import { type Opened, ownProcess } from '../wiring/process.ts'
import { openRunRecorder } from '../wiring/run-records.ts'
import type { Executor } from './executor.ts'
import { openExecutor } from './open-executor.ts'

/** An executor of the cluster, which takes queued work and executes it (services/README.md). */
export function openExecutorMember(settings: Settings, log: Log): Promise<Opened> {
  const { drainMs, runsPerWorker } = settings.process
  const opening = { role: 'executor', settings, log, openStore } as const
  return openClusterProcess(opening, async ({ join, closer, link, ...common }) => {
    const { store, events, tenantConfig, queue, metrics, isHeapHigh } = common
    const [redis, lease] = [redisOf(settings.redis), new Lease()]
    const { toolBox, schemas, close: closeTools } = await openTools(settings.tools, log, store)
    const flows = createFlows({ store, events, toolBox, schemas, configs: tenantConfig?.configs })
    const schedules = createBullSchedules(...redis)
    const recorder = openRunRecorder({ store, tenantConfig, metrics, log }, () => relay.epoch)
    const parts = { flows, store, events, recorder, tenantConfig, toolBox, queue, schedules, isHeapHigh, metrics, log }
    const opened = await openExecutor(settings.executor, { ...parts, fence: lease })
    const own = { ...ownProcess.asMember(runsPerWorker), lease, log, metrics }
    const relay = new ExecutorRelay(createRedisPorts(link), opened.executor, own)
    showRuns(metrics, opened.executor, runsPerWorker)
    await join(relay)
    await opened.start(createBullConsume({ url: redis[0], redis: redis[1], onProblem: problemsTo(log) }), {
      epoch: () => relay.epoch,
      announce: (run, reader) => relay.announceStart(run, reader),
      executors: relay.executors,
      isMember: (epoch) => relay.isMember(epoch),
    })
    return {
      relay,
      work: [closer('jobs', () => relay.drain(drainMs), drainMs)],
      rest: [
        closer('sweeps, webhooks, usage and records', () => opened.close()),
        closer('schedules', () => schedules.close()),
      ],
      closeTools,
    }
  })
}

async function openStore(settings: Settings['store'], log: Log): Promise<OpenedStore> {
  const store = await openClusterStore(settings, log)
  if (store) return store
  throw new ConfigError(['MONGODB_URL is missing: an executor needs the store of the cluster'])
}

function showRuns(metrics: Metrics, { runs }: Executor, runsPerWorker: number): void {
  metrics.gauge('runs', () => runs.countByStatus())
  metrics.gauge('runs_limit', () => runsPerWorker)
}

const problemsTo = (log: Log) => (message: string, cause: unknown) => log.warn(message, { cause })
