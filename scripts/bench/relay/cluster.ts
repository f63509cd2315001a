import { type RedisServer, startRedis } from '../../local-services/redis.ts'
import { cpuMs } from '../proc.ts'
import type { Peer, Peers } from './peer.ts'
import type { Target } from './target.ts'

export type Cpu = { gateway: number; worker: number; redis: number }

/** One worker and one gateway with their own Redis. Disposing of it ends all three. */
export type Cluster = AsyncDisposable & { target: Target; gateway: Peer; worker: Peer; cpuMs(): Cpu }

type Design = { worker: string; gateway: string; path: string; keepaliveMs: number }

export async function startCluster(peers: Peers, { worker, gateway, path, keepaliveMs }: Design): Promise<Cluster> {
  await using started = new AsyncDisposableStack()
  const redis = started.use(await startRedis())
  const options = { redisUrl: redis.url, keepaliveMs }
  const below = started.use(await peers.start(worker, options)) // Started first, so that the gateway finds it in the member list.
  const above = started.use(await peers.start(gateway, options))
  const all = started.move()
  return {
    target: { port: above.ready.port, path },
    gateway: above,
    worker: below,
    cpuMs: () => readCpu({ gateway: above, worker: below, redis }),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  }
}

const readCpu = ({ gateway, worker, redis }: { gateway: Peer; worker: Peer; redis: RedisServer }): Cpu => ({
  gateway: cpuMs(gateway.pid),
  worker: cpuMs(worker.pid),
  redis: cpuMs(redis.pid),
})
