import { Redis, type RedisOptions } from 'ioredis'
import { AppError } from '../errors.ts'
import { createHealth, type Health } from '../health.ts'

/** Scripts run in Redis as one step; each is named once, with its source. */
export type Script = { name: string; keys: number; lua: string }

/** A process's two connections to Redis: one for commands, one that listens. */
export interface RedisLink {
  /** The number of processes that heard it. Rejects within a second when Redis is away. */
  publish(channel: string, message: Buffer): Promise<number>
  listen(channel: string, onMessage: (message: Buffer) => void): Promise<void>
  unlisten(channel: string): Promise<void>
  /** Throws `unavailable` within a second when Redis is away. */
  run(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>
  /** For how long Redis has not answered; 0 while it does. */
  awayMs(): number
  close(): Promise<void>
}

const COMMAND_MS = 1_000
const RETRY_SECS = 2

/** No offline queue and few retries: a command is answered, or it fails within a second (reliability.md L2). */
const OPTIONS: RedisOptions = {
  commandTimeout: COMMAND_MS,
  connectTimeout: COMMAND_MS,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 1,
  retryStrategy: (attempt) => Math.min(50 * attempt, 500),
  lazyConnect: true,
  noDelay: true,
}

/** Connects. Rejects when Redis does not answer, or would evict keys (`maxmemory-policy` other than `noeviction`). */
export async function openRedisLink(url: string): Promise<RedisLink> {
  const commands = connect(url)
  const listener = connect(url)
  const handlers = new Map<string, (message: Buffer) => void>()
  listener.on('messageBuffer', (channel: Buffer, message: Buffer) => handlers.get(String(channel))?.(message))
  const close = async () => {
    commands.disconnect()
    listener.disconnect()
  }
  try {
    await Promise.all([commands.connect(), listener.connect()])
    await checkPolicy(commands)
  } catch (cause) {
    await close()
    throw cause
  }

  const health = createHealth()
  const defined = new Map<string, (...args: (string | number)[]) => Promise<unknown>>()
  return {
    publish: (channel, message) => watched(health, commands.publish(channel, message)),
    async listen(channel, onMessage) {
      handlers.set(channel, onMessage)
      await watched(health, listener.subscribe(channel))
    },
    async unlisten(channel) {
      handlers.delete(channel)
      await watched(health, listener.unsubscribe(channel))
    },
    async run(script, keys, args) {
      const command = defined.get(script.name) ?? define(commands, script)
      defined.set(script.name, command)
      try {
        return await watched(health, command(...keys, ...args))
      } catch (cause) {
        throw new AppError('unavailable', 'the cluster cannot be reached at the moment; try again', {
          retryAfterSecs: RETRY_SECS,
          cause,
        })
      }
    },
    awayMs: health.awayMs,
    close,
  }
}

function connect(url: string): Redis {
  const client = new Redis(url, OPTIONS as RedisOptions & { replyMapping?: never })
  client.on('error', () => {}) // Each command reports its own failure; the connection comes back by itself.
  return client
}

async function checkPolicy(commands: Redis): Promise<void> {
  const [, policy] = await commands.config('GET', 'maxmemory-policy')
  if (policy === 'noeviction') return
  throw new Error(`Redis has maxmemory-policy ${policy}: set it to noeviction, or it forgets owners and permissions`)
}

function define(commands: Redis, { name, keys, lua }: Script): (...args: (string | number)[]) => Promise<unknown> {
  commands.defineCommand(name, { numberOfKeys: keys, lua })
  const command = (commands as unknown as Record<string, (...args: (string | number)[]) => Promise<unknown>>)[name]
  if (!command) throw new Error(`the script ${name} was not defined`)
  return command.bind(commands)
}

/** Lets an answer through, and notes whether there was one. */
async function watched<T>(health: Health, answer: Promise<T>): Promise<T> {
  try {
    const value = await answer
    health.answered()
    return value
  } catch (cause) {
    health.failed()
    throw cause
  }
}
