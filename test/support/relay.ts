import type { Executor } from '../../services/executor/executor.ts'
import type { Session } from '../../services/worker/sessions/session.ts'
import type { Worker } from '../../services/worker/worker.ts'
import type { MemoryBus } from '../../shared/cluster/bus/memory-bus.ts'
import { Lease } from '../../shared/cluster/members/lease.ts'
import { MemoryCluster } from '../../shared/cluster/memory-cluster.ts'
import { claimsOf } from '../../shared/cluster/owners/held-claims.ts'
import { openWorkerPermissionStore } from '../../shared/cluster/permissions/redis-store.ts'
import type { PermissionStore } from '../../shared/cluster/permissions/store.ts'
import { createRedisPorts } from '../../shared/cluster/redis-ports.ts'
import { GatewayRelay, type GatewayRelayDeps } from '../../shared/cluster/relay/gateway/gateway.ts'
import type { ClusterPorts, MemberDeps } from '../../shared/cluster/relay/member.ts'
import { ExecutorRelay } from '../../shared/cluster/relay/worker/executor.ts'
import { WorkerRelay } from '../../shared/cluster/relay/worker/worker.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import type { RedisOptions } from '../../shared/platform/config/redis-place.ts'
import { openRedisLink, type RedisLink } from '../../shared/platform/redis/link.ts'
import { waitForRedis } from '../../shared/platform/redis/wait-for-redis.ts'
import { createDemoExecutor } from './demo-executor.ts'
import { createDemoWorker } from './demo-worker.ts'
import { SILENT_LOG } from './silent-log.ts'

const log = SILENT_LOG

/** How a member reaches the others: over `link`, a connection of its own. */
type Connection<Link> = { link: Link; ports: ClusterPorts; openPermissions(pid: number): Promise<PermissionStore> }
type Closable = { close(): Promise<void> }

export type Gateway<Link = RedisLink> = GatewayRelay & { link: Link }
export type RelayedWorker<Link = RedisLink> = WorkerRelay<Session> & {
  worker: Worker
  link: Link
  leave(): Promise<void>
}
export type RelayedExecutor<Link = RedisLink> = ExecutorRelay & {
  executor: Executor
  link: Link
  leave(): Promise<void>
}

export type WorkerOptions = {
  limits?: Parameters<typeof createDemoWorker>[1]
  deps?: Parameters<typeof createDemoWorker>[2]
  relay?: Partial<MemberDeps>
}

/** Gateways, executors, and workers with the demo model, all in this process, each with its own connection to the others. */
export type TestRelay<Link = RedisLink> = {
  gateway(options?: Partial<GatewayRelayDeps>): Promise<Gateway<Link>>
  worker(options?: WorkerOptions): Promise<RelayedWorker<Link>>
  /** Tests open its runs themselves: it takes none from a queue. */
  executor(): Promise<RelayedExecutor<Link>>
  /** Stops all members that have not left yet. */
  close(): Promise<void>
}

/** The members are connected by the Redis of this address. */
export const createTestRelay = (urlOf: () => string, options: RedisOptions = {}): TestRelay =>
  createRelay(async () => {
    const link = await openRedisLink(urlOf(), options)
    return { link, ports: createRedisPorts(link), openPermissions: (pid) => openWorkerPermissionStore(link, pid) }
  })

type MemoryRelay = TestRelay<MemoryBus> & {
  /** Cuts a member off, and removes it as the others do once its lease has run out, which they would find in four seconds. */
  kill(member: { link: MemoryBus; epoch: number }): Promise<void>
}

/** The members are connected within this process. */
export const createMemoryRelay = (cluster = new MemoryCluster()): MemoryRelay => {
  const relay = createRelay(async () => {
    const ports = cluster.connect()
    return { link: ports.bus, ports, openPermissions: async () => ports.permissions }
  })
  const killers: MemoryBus[] = []
  return {
    ...relay,
    async kill({ link, epoch }) {
      link.cut()
      const { bus, members } = cluster.connect()
      killers.push(bus)
      await members.leave(epoch)
    },
    async close() {
      await relay.close()
      for (const bus of killers.splice(0)) await bus.close()
    },
  }
}

function createRelay<Link extends Closable>(connect: () => Promise<Connection<Link>>): TestRelay<Link> {
  const closers: (() => Promise<void>)[] = []
  let pid = 0
  return {
    async gateway(deps = {}) {
      const { link, ports } = await connect()
      const relay = new GatewayRelay(ports, { pid: ++pid, log, metrics: NO_METRICS, ...deps })
      await waitForRedis(() => relay.join(), { log })
      closers.push(async () => {
        await relay.stop()
        await link.close()
      })
      return Object.assign(relay, { link })
    },
    async worker(parts = {}) {
      const connection = await connect()
      const { link } = connection
      const [worker, relay] = await connectWorker(connection, ++pid, parts)
      await waitForRedis(() => relay.join(), { log })
      const leave = async () => {
        await worker.drain(0)
        await relay.stop()
        await link.close()
      }
      closers.push(leave)
      return Object.assign(relay, { worker, link, leave })
    },
    async executor() {
      const { link, ports } = await connect()
      const executor = await createDemoExecutor()
      const relay = new ExecutorRelay(ports, executor, { pid: ++pid, lease: new Lease(), log, metrics: NO_METRICS })
      await waitForRedis(() => relay.join(), { log })
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
  { ports, openPermissions }: Connection<unknown>,
  pid: number,
  { limits, deps, relay: options }: WorkerOptions,
): Promise<[Worker, WorkerRelay<Session>]> {
  const permissions = await openPermissions(pid)
  const worker = createDemoWorker(permissions, limits, { claims: claimsOf(() => relay), ...deps })
  const relay: WorkerRelay<Session> = new WorkerRelay(ports, worker, {
    pid,
    lease: new Lease(),
    log,
    metrics: NO_METRICS,
    ...options,
  })
  return [worker, relay]
}
