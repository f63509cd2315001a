import { Redis } from 'ioredis'

export type RedisFacts = {
  version: string
  /** A job queue in Redis loses jobs under any policy other than `noeviction`. */
  maxmemoryPolicy: string
  pid: number
}

const ANSWER_WITHIN_MS = 2000

/** Reads version, eviction policy and pid of the Redis at `url`. Throws when it does not answer within 2 s; the message does not contain the password. */
export async function checkRedis(url: string, withinMs = ANSWER_WITHIN_MS): Promise<RedisFacts> {
  const client = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    enableOfflineQueue: false,
    disconnectTimeout: 0,
  })
  let failure: unknown
  client.on('error', (cause) => (failure = cause))
  const timer = setTimeout(() => client.disconnect(), withinMs)
  try {
    await client.connect()
    return readFacts(await client.info())
  } catch (cause) {
    throw new Error(`no Redis answers at ${addressOf(url)} (${reasonOf(failure ?? cause)})`, { cause })
  } finally {
    clearTimeout(timer)
    client.disconnect()
  }
}

function readFacts(info: string): RedisFacts {
  const read = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1] ?? ''
  return { version: read('redis_version'), maxmemoryPolicy: read('maxmemory_policy'), pid: Number(read('process_id')) }
}

const addressOf = (url: string) => (URL.canParse(url) ? new URL(url).host : 'an invalid URL')

function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return 'no answer'
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message
}
