import type { Worker } from '../../services/worker/worker.ts'
import { Lease } from '../../shared/broker/placement/lease.ts'
import { openRedisLink, type RedisLink } from '../../shared/broker/redis-link.ts'
import {
  type GatewayRelay,
  joinAsGateway,
  joinAsWorker,
  openWorkerPermissions,
  type WorkerRelay,
} from '../../shared/broker/relay/redis.ts'
import { createLog } from '../../shared/log.ts'
import { NO_METRICS } from '../../shared/metrics.ts'
import { createDemoWorker } from './demo-worker.ts'

const log = createLog({ level: 'error', write: () => {} })

export type RelayedWorker = WorkerRelay & { worker: Worker; link: RedisLink; leave(): Promise<void> }
export type Gateway = GatewayRelay & { link: RedisLink }

/** Gateways and workers that run the demo, all in this process, each with its own way to Redis. */
export type TestRelay = {
  gateway(options?: Partial<Parameters<typeof joinAsGateway>[1]>): Promise<Gateway>
  worker(...deps: DemoParts): Promise<RelayedWorker>
  /** Everything that has not left yet. */
  close(): Promise<void>
}

type DemoParts = Parameters<typeof createDemoWorker> extends [unknown, ...infer Rest] ? Rest : never

export function createTestRelay(urlOf: () => string): TestRelay {
  const closers: (() => Promise<void>)[] = []
  let pid = 0
  return {
    async gateway(options = {}) {
      const link = await openRedisLink(urlOf())
      const relay = await joinAsGateway(link, { pid: ++pid, log, metrics: NO_METRICS, ...options })
      closers.push(async () => {
        await relay.stop()
        await link.close()
      })
      return { ...relay, link }
    },
    async worker(...parts) {
      const link = await openRedisLink(urlOf())
      const worker = createDemoWorker(await openWorkerPermissions(link, ++pid), ...parts)
      const relay = await joinAsWorker(link, worker, { pid, lease: new Lease(), log, metrics: NO_METRICS })
      const leave = async () => {
        await worker.drain(0)
        await relay.stop()
        await link.close()
      }
      closers.push(leave)
      return { ...relay, worker, link, leave }
    },
    async close() {
      for (const close of closers.splice(0)) await close()
    },
  }
}
