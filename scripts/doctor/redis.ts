import { Redis } from 'ioredis'
import { type Check, type Finding, type Patient, unreachable } from './finding.ts'

const WITHIN_MS = 3_000
const MAX_SKEW_MS = 2_000

/** Eviction and persistence: the queue's jobs are kept in Redis only. */
export const checkRedis: Check = ({ config }) =>
  withRedis(config.redisUrl, async (redis) => {
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
  withRedis(config.redisUrl, async (redis) => {
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

async function withRedis(
  url: Patient['config']['redisUrl'],
  look: (redis: Redis) => Promise<Finding[]>,
): Promise<Finding[]> {
  if (url === undefined) return []
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: WITHIN_MS,
    commandTimeout: WITHIN_MS,
    retryStrategy: () => null,
    disconnectTimeout: 0,
  })
  let failure: unknown // `connect` rejects with less.
  redis.on('error', (cause) => {
    failure = cause
  })
  try {
    await redis.connect()
    return await look(redis)
  } catch (cause) {
    return unreachable(`the Redis of REDIS_URL (${new URL(url).host})`, failure ?? cause)
  } finally {
    redis.disconnect()
  }
}
