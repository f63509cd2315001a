import { type RedisOptions as ClientOptions, Redis } from 'ioredis'
import { AppError } from '../../kernel/errors.ts'
import { createHealth, type Health } from '../../kernel/health.ts'
import { connectionOptions, prefixOf, type RedisOptions } from '../config/redis-place.ts'

/** A Lua script, which Redis runs as one atomic step. Two scripts must not have the same name. */
export type Script = { name: string; keys: number; lua: string }

/** An argument of a script. */
export type Argument = string | number | Buffer

/** A process's two connections to Redis: one for commands, one for subscriptions. */
export interface RedisLink {
  /** Begins every key and channel. The methods put it before the names that they are given. */
  readonly prefix: string
  /** Resolves with the number of subscribers that got the message. Rejects within a second when Redis is unreachable. */
  publish(channel: string, message: Buffer): Promise<number>
  /** Subscribes. The subscription is made again with each new connection, until `unsubscribe`. */
  subscribe(channel: string, onMessage: (message: Buffer) => void): Promise<void>
  unsubscribe(channel: string): Promise<void>
  /** Makes all subscriptions again. */
  resubscribe(): Promise<void>
  /** Replaces the connection for subscriptions: the present one hangs. */
  reconnect(): void
  /** Throws `unavailable` within a second when Redis is unreachable. */
  run(script: Script, keys: readonly string[], args: readonly Argument[]): Promise<unknown>
  /** For how long Redis has not answered; 0 while it answers. */
  awayMs(): number
  /** Whether Redis has just refused a write because its memory is used up (`maxmemory`). Every process writes once a second. */
  isFull(): boolean
  close(): Promise<void>
}

const COMMAND_MS = 1_000
const RETRY_SECS = 2
/** Longer than the time between two renewals of a lease, which are refused as well while the memory is full. */
const FULL_MS = 2_000

/** No offline queue and few retries: a command is answered or fails within a second, so that requests get their 503 in time. */
const OPTIONS: ClientOptions = {
  commandTimeout: COMMAND_MS,
  connectTimeout: COMMAND_MS,
  enableOfflineQueue: false,
  autoResubscribe: false,
  maxRetriesPerRequest: 1,
  retryStrategy: (attempt) => Math.min(50 * attempt, 500),
  lazyConnect: true,
  noDelay: true,
}

export type LinkOptions = RedisOptions & {
  /** Receives what may be wrong with the Redis and does not prevent its use. */
  warn?: (message: string) => void
}

/** Connects. Rejects when Redis does not answer, or would evict keys (`maxmemory-policy` other than `noeviction`). */
export async function openRedisLink(url: string, { warn, ...options }: LinkOptions = {}): Promise<RedisLink> {
  const prefix = prefixOf(options)
  let lastError: unknown
  const commands = connect(url, options).on('error', (cause) => (lastError = cause))
  const listener = connect(url, options)
  const close = async () => {
    commands.disconnect()
    listener.removeAllListeners('messageBuffer') // Messages that are still on their way are for nobody.
    listener.disconnect()
  }
  try {
    await Promise.all([commands.connect(), listener.connect()])
    await checkEvictionPolicy(commands, warn)
  } catch (cause) {
    await close()
    // ioredis says only that the connection is closed; its event has the reason, such as ECONNREFUSED.
    throw String(cause).endsWith('Connection is closed.') ? (lastError ?? cause) : cause
  }
  const health = createHealth()
  let refusedAt = -Infinity
  const onFull = () => {
    refusedAt = performance.now()
  }
  return {
    prefix,
    publish: (channel, message) => tracked(health, commands.publish(prefix + channel, message)),
    ...createSubscriptions(listener, { prefix, health }),
    run: createScriptRunner(commands, { prefix, health, onFull }),
    awayMs: health.awayMs,
    isFull: () => performance.now() - refusedAt < FULL_MS,
    close,
  }
}

function connect(url: string, options: RedisOptions): Redis {
  const all = { ...OPTIONS, ...connectionOptions(url, options) }
  const client = new Redis(url, all as ClientOptions & { replyMapping?: never })
  client.on('error', () => {}) // Each command reports its own failure, and ioredis reconnects.
  return client
}

type Scope = { prefix: string; health: Health }

type Subscriptions = Pick<RedisLink, 'subscribe' | 'unsubscribe' | 'resubscribe' | 'reconnect'>

/** ioredis forgets the subscriptions when a connection breaks before they were made again, so they are kept here. */
function createSubscriptions(listener: Redis, { prefix, health }: Scope): Subscriptions {
  const handlers = new Map<string, (message: Buffer) => void>()
  listener.on('messageBuffer', (channel: Buffer, message: Buffer) => handlers.get(String(channel))?.(message))
  const resubscribe = async () => {
    if (handlers.size > 0) await tracked(health, listener.subscribe(...handlers.keys()))
  }
  listener.on('ready', () => void resubscribe().catch(() => {})) // A process that hears nothing notices it.
  return {
    async subscribe(name, onMessage) {
      const channel = prefix + name
      handlers.set(channel, onMessage)
      try {
        await tracked(health, listener.subscribe(channel))
      } catch (cause) {
        handlers.delete(channel)
        throw cause
      }
    },
    async unsubscribe(name) {
      const channel = prefix + name
      handlers.delete(channel)
      await tracked(health, listener.unsubscribe(channel))
    },
    resubscribe,
    reconnect: () => listener.disconnect(true),
  }
}

type Command = (...args: Argument[]) => Promise<unknown>

function createScriptRunner(commands: Redis, { prefix, health, onFull }: Scope & { onFull(): void }): RedisLink['run'] {
  const defined = new Map<string, Command>()
  return async (script, keys, args) => {
    const command = defined.get(script.name) ?? define(commands, script)
    defined.set(script.name, command)
    try {
      return await tracked(health, command(...keys.map((key) => prefix + key), ...args))
    } catch (cause) {
      if (cause instanceof Error && cause.message.startsWith('OOM ')) onFull()
      throw new AppError('unavailable', 'the cluster cannot be reached at the moment; try again', {
        retryAfterSecs: RETRY_SECS,
        cause,
      })
    }
  }
}

/** Reads INFO, since managed services forbid CONFIG. */
async function checkEvictionPolicy(commands: Redis, warn: LinkOptions['warn']): Promise<void> {
  const info = await commands.info('memory').catch((cause: unknown) => {
    if (isForbidden(cause)) return ''
    throw cause
  })
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1]
  if (policy === 'noeviction') return
  if (policy === undefined)
    return warn?.(
      'the maxmemory-policy of Redis cannot be read: make sure that it is noeviction, so that Redis deletes no keys',
    )
  throw new Error(
    `Redis has maxmemory-policy ${policy}: set it to noeviction, or Redis deletes session owners and permissions`,
  )
}

const isForbidden = (cause: unknown): boolean => cause instanceof Error && /^(NOPERM|ERR unknown)/.test(cause.message)

function define(commands: Redis, { name, keys, lua }: Script): Command {
  commands.defineCommand(name, { numberOfKeys: keys, lua })
  const command = (commands as unknown as Record<string, Command>)[name]
  if (!command) throw new Error(`the script ${name} was not defined`)
  return command.bind(commands)
}

/** Settles as `answer` does, and records whether Redis answered. */
async function tracked<T>(health: Health, answer: Promise<T>): Promise<T> {
  try {
    const value = await answer
    health.answered()
    return value
  } catch (cause) {
    health.failed()
    throw cause
  }
}
