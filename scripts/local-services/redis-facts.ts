import { Redis } from 'ioredis'
import { connectionOptions, type Sentinels } from '../../shared/platform/config/redis-place.ts'

export type RedisFacts = {
  version: string
  /** A job queue in Redis loses jobs under any policy other than `noeviction`. */
  maxmemoryPolicy: string
  pid: number
  /** The host and port of the server that answered: behind sentinels, the present primary. */
  host: string
}

type CheckOptions = { withinMs?: number; sentinels?: Sentinels | undefined }

const ANSWER_WITHIN_MS = 2000

/**
 * Reads version, eviction policy and pid of the Redis at `url`, or of the one that the sentinels name. Throws when it does not answer within
 * 2 s; the message does not contain the password.
 */
export async function checkRedis(
  url: string,
  { withinMs = ANSWER_WITHIN_MS, sentinels }: CheckOptions = {},
): Promise<RedisFacts> {
  const client = new Redis(url, {
    ...connectionOptions(url, { sentinels }),
    lazyConnect: true,
    retryStrategy: () => null,
    sentinelRetryStrategy: () => null,
    enableOfflineQueue: false,
    disconnectTimeout: 0,
  })
  let failure: unknown
  client.on('error', (cause) => (failure = cause))
  const timer = setTimeout(() => client.disconnect(), withinMs)
  try {
    await client.connect()
    const { remoteAddress = '', remotePort } = client.stream
    return { ...readFacts(await client.info()), host: `${urlHost(remoteAddress)}:${remotePort}` }
  } catch (cause) {
    const place = sentinels ? `the address that the sentinels have for ${sentinels.primary}` : addressOf(url)
    throw new Error(`no Redis answers at ${place} (${reasonOf(failure ?? cause)})`, { cause })
  } finally {
    clearTimeout(timer)
    client.disconnect()
  }
}

const urlHost = (address: string) => (address.includes(':') ? `[${address}]` : address)

function readFacts(info: string): Omit<RedisFacts, 'host'> {
  const read = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1] ?? ''
  return { version: read('redis_version'), maxmemoryPolicy: read('maxmemory_policy'), pid: Number(read('process_id')) }
}

const addressOf = (url: string) => (URL.canParse(url) ? new URL(url).host : 'an invalid URL')

function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return 'no answer'
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message
}
