import type { Cluster, Redis } from 'ioredis'
import { redisOf } from '../../shared/platform/config/redis-place.ts'
import { createRedisClient } from '../../shared/platform/redis/connect.ts'
import { type Check, type Finding, type Patient, unreachable } from './finding.ts'

const WITHIN_MS = 3_000
const MAX_SKEW_MS = 2_000

/** Eviction and persistence: the queue's jobs are kept in Redis only. */
export const checkRedis: Check = ({ config }) =>
  withEachRedis(config, async (redis) => {
    const info = await redis.info()
    const read = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? ''
    const policy = read('maxmemory_policy')
    const findings: Finding[] = []
    if (policy !== 'noeviction')
      findings.push({
        problem: `Redis evicts keys when its memory is full (maxmemory-policy ${policy}), so jobs and sessions get lost`,
        cure: 'set maxmemory-policy noeviction',
      })
    if (read('aof_enabled') !== '1')
      findings.push({
        problem: 'Redis keeps no append-only file, so a restart loses the queued jobs',
        cure: 'set appendonly yes and appendfsync everysec',
      })
    if (read('aof_enabled') === '1' && read('aof_last_write_status') !== 'ok')
      findings.push({
        problem: 'Redis cannot write its append-only file',
        cure: 'give its disk room, and read its log',
      })
    if (read('role') !== 'master')
      findings.push({
        problem: 'REDIS_URL names a replica, which takes no writes',
        cure: 'name the primary in REDIS_URL',
      })
    return findings
  })

/** Leases and deadlines of the cluster go by Redis's clock, tokens and schedules by this machine's. */
export const checkClock: Check = ({ config }) =>
  withEachRedis(config, async (redis) => {
    const before = Date.now()
    const [seconds = 0, micros = 0] = (await redis.time()).map(Number)
    const skewMs = Math.round((before + Date.now()) / 2 - (seconds * 1_000 + micros / 1_000))
    if (Math.abs(skewMs) <= MAX_SKEW_MS) return []
    const way = skewMs > 0 ? 'ahead of' : 'behind'
    return [
      {
        problem: `the clock of this machine is ${(Math.abs(skewMs) / 1_000).toFixed(1)} s ${way} the one of Redis's machine`,
        cure: 'run a time service such as chrony on both',
      },
    ]
  })

type Place = Pick<Patient['config'], 'redisUrl' | 'redisSentinels' | 'redisCluster' | 'clusterName'>

/** Looks at the Redis of the settings; at each primary of a Redis Cluster. */
async function withEachRedis(config: Place, look: (redis: Redis) => Promise<Finding[]>): Promise<Finding[]> {
  const { redisUrl, redisSentinels, redisCluster } = config
  if (redisUrl === undefined && !redisSentinels && !redisCluster) return []
  const times = { connectTimeout: WITHIN_MS, commandTimeout: WITHIN_MS, maxRetriesPerRequest: 1 }
  const client = createRedisClient(...redisOf(config), times)
  let failure: unknown // `connect` rejects with less.
  client.on('error', (cause) => {
    failure = cause
  })
  try {
    await client.connect()
    if (!client.isCluster) return await look(client as Redis)
    return (await Promise.all((client as Cluster).nodes('master').map((node) => lookAtNode(node, look)))).flat()
  } catch (cause) {
    return unreachable(nameOf(config), failure ?? cause)
  } finally {
    client.disconnect()
  }
}

async function lookAtNode(node: Redis, look: (redis: Redis) => Promise<Finding[]>): Promise<Finding[]> {
  const { host, port } = node.options
  return (await look(node)).map((finding) =>
    'note' in finding ? finding : { ...finding, problem: `node ${host}:${port}: ${finding.problem}` },
  )
}

function nameOf({ redisUrl, redisSentinels, redisCluster }: Place): string {
  if (redisCluster)
    return `the Redis Cluster of REDIS_CLUSTER (${redisCluster.map(({ host, port }) => `${host}:${port}`).join(', ')})`
  if (redisSentinels) return `the Redis that REDIS_SENTINELS name (${redisSentinels.primary})`
  return `the Redis of REDIS_URL (${redisUrl === undefined ? '' : new URL(redisUrl).host})`
}
