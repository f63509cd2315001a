import { startRedis } from '../../scripts/local-services/redis.ts'
import { startRedisCluster } from '../../scripts/local-services/redis-cluster.ts'

/** The Redis of a cluster under test: its servers, and the settings that name it. */
export type ClusterRedis = { urls: readonly string[]; env: Readonly<Record<string, string>>; stop(): Promise<void> }

/** One server; with TEST_REDIS=cluster a Redis Cluster of three, on which all tests of the cluster form run as well (D33). */
export async function startClusterRedis(): Promise<ClusterRedis> {
  if (process.env['TEST_REDIS'] !== 'cluster') {
    const redis = await startRedis()
    return { urls: [redis.url], env: { REDIS_URL: redis.url }, stop: () => redis.stop() }
  }
  const cluster = await startRedisCluster()
  const stop = async () => cluster[Symbol.asyncDispose]()
  const nodes = cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(',')
  return { urls: cluster.servers.map(({ url }) => url), env: { REDIS_CLUSTER: nodes }, stop }
}
