import { Redis } from 'ioredis'
import { type RedisServer, startRedis } from '../../scripts/local-services/redis.ts'
import { type LocalRedisCluster, startRedisCluster } from '../../scripts/local-services/redis-cluster.ts'
import { createRedisClient, type RedisClient } from '../../shared/platform/redis/connect.ts'

/**
 * Starts the Redis of a cluster under test: one server, or with TEST_REDIS=cluster a Redis Cluster of three, and of three replicas for those
 * who ask for them. All tests and scenarios of the cluster form run on either (D33).
 */
export async function startClusterRedis({ hasReplicas = false } = {}): Promise<ClusterRedis> {
  if (process.env['TEST_REDIS'] !== 'cluster') return new ClusterRedis([await startRedis()])
  const cluster = await startRedisCluster({ hasReplicas })
  return new ClusterRedis(cluster.servers, cluster)
}

/** The Redis of a cluster under test, as a whole. */
export class ClusterRedis implements AsyncDisposable {
  readonly servers: readonly RedisServer[]
  readonly #cluster: LocalRedisCluster | undefined

  constructor(servers: readonly RedisServer[], cluster?: LocalRedisCluster) {
    this.servers = servers
    this.#cluster = cluster
  }

  get urls(): string[] {
    return this.servers.map(({ url }) => url)
  }

  /** The settings that name it. */
  get env(): Record<string, string> {
    if (!this.#cluster) return { REDIS_URL: this.urls[0] ?? '' }
    return { REDIS_CLUSTER: this.#cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(',') }
  }

  get isRunning(): boolean {
    return this.servers.some(({ isRunning }) => isRunning)
  }

  /** Calls `work` with a client. */
  async withClient<T>(work: (client: RedisClient) => Promise<T>): Promise<T> {
    const client = createRedisClient(this.urls[0] ?? '', { cluster: this.#cluster?.nodes }, { maxRetriesPerRequest: 3 })
    try {
      await client.connect()
      return await work(client)
    } finally {
      client.disconnect()
    }
  }

  /** Deletes all keys. */
  async flush(): Promise<void> {
    await this.withClient((client) => Promise.all(primariesOf(client).map((node) => node.flushall())))
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kill(signal)))
  }

  /** Starts all servers again, without their keys. */
  async restart(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.restart()))
    await this.#cluster?.ready()
  }

  async stop(): Promise<void> {
    await (this.#cluster ?? this.servers[0])?.[Symbol.asyncDispose]()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}

/** The servers that have keys and channels. */
export const primariesOf = (client: RedisClient): Redis[] =>
  client instanceof Redis ? [client] : client.nodes('master')
