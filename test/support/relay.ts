import type { Executor } from '../../services/executor/executor.ts'
import type { Session } from '../../services/worker/session.ts'
import type { Worker } from '../../services/worker/worker.ts'
import { Lease } from '../../shared/cluster/members/lease.ts'
import { openWorkerPermissionStore } from '../../shared/cluster/permissions/redis-store.ts'
import { ExecutorRelay } from '../../shared/cluster/relay/executor.ts'
import { GatewayRelay, type GatewayRelayDeps } from '../../shared/cluster/relay/gateway.ts'
import { WorkerRelay, type WorkerRelayDeps } from '../../shared/cluster/relay/worker.ts'
import { createLog } from '../../shared/kernel/log.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import type { RedisOptions } from '../../shared/platform/config/redis-place.ts'
import { openRedisLink, type RedisLink } from '../../shared/platform/redis/link.ts'
import { createDemoExecutor } from './demo-executor.ts'
import { createDemoWorker } from './demo-worker.ts'

const log = createLog({ level: 'error', write: () => {} })

export type Gateway = GatewayRelay & { link: RedisLink }
export type RelayedWorker = WorkerRelay<Session> & { worker: Worker; link: RedisLink; leave(): Promise<void> }
export type RelayedExecutor = ExecutorRelay & { executor: Executor; link: RedisLink; leave(): Promise<void> }

export type WorkerOptions = {
  limits?: Parameters<typeof createDemoWorker>[1]
  deps?: Parameters<typeof createDemoWorker>[2]
  relay?: Partial<WorkerRelayDeps>
}

/** Gateways, executors, and workers with the demo model, all in this process, each with its own connections to Redis. */
export type TestRelay = {
  gateway(options?: Partial<GatewayRelayDeps>): Promise<Gateway>
  worker(options?: WorkerOptions): Promise<RelayedWorker>
  /** Tests open its runs themselves: it takes none from a queue. */
  executor(): Promise<RelayedExecutor>
  /** Stops all members that have not left yet. */
  close(): Promise<void>
}

export function createTestRelay(urlOf: () => string, options: RedisOptions = {}): TestRelay {
  const closers: (() => Promise<void>)[] = []
  let pid = 0
  return {
    async gateway(deps = {}) {
      const link = await openRedisLink(urlOf(), options)
      const relay = new GatewayRelay(link, { pid: ++pid, log, metrics: NO_METRICS, ...deps })
      await relay.join()
      closers.push(async () => {
        await relay.stop()
        await link.close()
      })
      return Object.assign(relay, { link })
    },
    async worker(parts = {}) {
      const link = await openRedisLink(urlOf(), options)
      const [worker, relay] = await connectWorker(link, ++pid, parts)
      await relay.join()
      const leave = async () => {
        await worker.drain(0)
        await relay.stop()
        await link.close()
      }
      closers.push(leave)
      return Object.assign(relay, { worker, link, leave })
    },
    async executor() {
      const link = await openRedisLink(urlOf(), options)
      const executor = await createDemoExecutor()
      const relay = new ExecutorRelay(link, executor, { pid: ++pid, lease: new Lease(), log, metrics: NO_METRICS })
      await relay.join()
      const leave = async () => {
        await relay.drain(0)
        await relay.stop()
        await link.close()
      }
      closers.push(leave)
      return Object.assign(relay, { executor, link, leave })
    },
    async close() {
      for (const close of closers.splice(0)) await close()
    },
  }
}

/** A demo worker and its relay, which has not joined yet. */
async function connectWorker(
  link: RedisLink,
  pid: number,
  { limits, deps, relay: options }: WorkerOptions,
): Promise<[Worker, WorkerRelay<Session>]> {
  const permissions = await openWorkerPermissionStore(link, pid)
  const onSessionRemoved = (session: Session) => relay.releaseClaim(session)
  const worker = createDemoWorker(permissions, limits, { onSessionRemoved, ...deps })
  const relay: WorkerRelay<Session> = new WorkerRelay(link, worker, {
    pid,
    lease: new Lease(),
    log,
    metrics: NO_METRICS,
    ...options,
  })
  return [worker, relay]
}
