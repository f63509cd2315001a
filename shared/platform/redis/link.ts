import type { Cluster, Redis } from 'ioredis'
import { withDeadline } from '../../kernel/async/deadline.ts'
import { AppError } from '../../kernel/errors.ts'
import { createHealth, type Health } from '../../kernel/health.ts'
import { prefixOf, type RedisOptions } from '../config/redis-place.ts'
import { createRedisClient, type RedisClient } from './connect.ts'
import { createSubscriptions, type Subscriptions } from './subscriptions.ts'

/** A Lua script, which Redis runs as one atomic step. In a Redis Cluster all of its keys must be in one slot. Two scripts must not have the same name. */
export type Script = { name: string; keys: number | 'any'; lua: string }

/** An argument of a script. */
export type Argument = string | number | Buffer

/** A process's two connections to Redis: one for commands, one for subscriptions. In a Redis Cluster it has two to each node. */
export interface RedisLink extends Subscriptions {
  /** The prefix of every key and channel. The methods add it to the given names. */
  readonly prefix: string
  /** Whether it is a Redis Cluster, where a script runs on one node, and a published message reaches the subscribers at one node. */
  readonly isCluster: boolean
  /** Resolves with the number of subscribers that got the message. Rejects within a second when Redis is unreachable. */
  publish(channel: string, message: Buffer): Promise<number>
  /** Throws `unavailable` within a second when Redis is unreachable. */
  run(script: Script, keys: readonly string[], args: readonly Argument[]): Promise<unknown>
  /** For how long Redis has not answered; 0 while it answers. */
  awayMs(): number
  /** Whether Redis has just refused a write because its memory is used up (`maxmemory`). Every process writes once a second. */
  isFull(): boolean
  close(): Promise<void>
}

const COMMAND_MS = 1_000
/** The time after which waiting commands on a hanging connection fail. It is long enough, unless this process itself was paused. */
const HANGING_MS = 3_000
/** The time for the first connection; in a Redis Cluster it also reads which node has which slot. */
const OPEN_MS = 5_000
const RETRY_SECS = 2
/** Longer than the time between two renewals of a lease: these are also refused while the memory is full. */
const FULL_MS = 2_000

/** No offline queue and few retries: a command is answered or fails within a second, so that requests get their 503 in time. */
const OPTIONS = {
  commandTimeout: HANGING_MS,
  connectTimeout: COMMAND_MS,
  enableOfflineQueue: false,
  autoResubscribe: false,
  maxRetriesPerRequest: 1,
}

export type LinkOptions = RedisOptions & {
  /** Receives a warning about a problem of Redis that does not prevent its use. */
  warn?: (message: string) => void
}

/** Connects. Rejects when Redis does not answer, or would evict keys (`maxmemory-policy` other than `noeviction`). */
export async function openRedisLink(url: string, { warn, ...options }: LinkOptions = {}): Promise<RedisLink> {
  const prefix = prefixOf(options)
  let lastError: unknown
  const commands = createRedisClient(url, options, OPTIONS)
  commands.on(options.cluster ? 'node error' : 'error', (cause: unknown) => (lastError = cause))
  const health = createHealth()
  const listener = createSubscriptions(() => createRedisClient(url, options, { ...OPTIONS, subscribes: true }), {
    prefix,
    tracked: (answer) => tracked(health, answer),
  })
  const close = async () => {
    commands.disconnect()
    listener.close()
  }
  try {
    await withDeadline(Promise.all([commands.connect(), listener.connect()]), OPEN_MS, () => notOpened(options))
    await checkEvictionPolicy(commands, warn)
  } catch (cause) {
    await close()
    throw reasonOf(cause, lastError, options)
  }
  let refusedAt = -Infinity
  const onFull = () => {
    refusedAt = performance.now()
  }
  return {
    prefix,
    isCluster: commands.isCluster,
    publish: (name, message) => {
      const channel = prefix + name
      const sent = commands.isCluster ? commands.spublish(channel, message) : commands.publish(channel, message)
      return tracked(health, sent as Promise<number>)
    },
    ...listener.subscriptions,
    run: createScriptRunner(commands, { prefix, health, onFull }),
    awayMs: health.awayMs,
    isFull: () => performance.now() - refusedAt < FULL_MS,
    close,
  }
}

type Scope = { prefix: string; health: Health }

type Command = (...args: Argument[]) => Promise<unknown>

function createScriptRunner(
  commands: RedisClient,
  { prefix, health, onFull }: Scope & { onFull(): void },
): RedisLink['run'] {
  const defined = new Map<string, Command>()
  return async (script, keys, args) => {
    const command = defined.get(script.name) ?? define(commands, script)
    defined.set(script.name, command)
    try {
      const count = script.keys === 'any' ? [keys.length] : []
      return await tracked(health, command(...count, ...keys.map((key) => prefix + key), ...args))
    } catch (cause) {
      if (cause instanceof Error && cause.message.startsWith('OOM ')) onFull()
      throw new AppError('unavailable', 'the cluster cannot be reached at the moment; try again', {
        retryAfterSecs: RETRY_SECS,
        cause,
      })
    }
  }
}

/** ioredis says only that the connection is closed, or that no node can be used; its event has the reason, such as ECONNREFUSED or WRONGPASS. */
function reasonOf(cause: unknown, lastError: unknown, { cluster }: RedisOptions): unknown {
  if (!/Connection is closed|None of startup nodes/.test(String(cause))) return cause
  if (!cluster) return lastError ?? cause
  const nodes = cluster.map(({ host, port }) => `${host}:${port}`).join(', ')
  const reason = lastError instanceof Error ? ` (${lastError.message})` : ''
  return new Error(`no node of REDIS_CLUSTER answers: ${nodes}${reason}`, { cause })
}

/** ioredis waits forever for nodes that answer but do not report the slots. */
const notOpened = ({ cluster }: RedisOptions): Error =>
  new Error(
    cluster
      ? 'REDIS_CLUSTER: connecting timed out: its nodes answer, but name no address for the slots; look at `CLUSTER SLOTS`, and set cluster-announce-ip where the address is empty'
      : 'connecting to Redis timed out',
  )

/** Checks every primary. It reads INFO, because managed services forbid CONFIG. */
async function checkEvictionPolicy(commands: RedisClient, warn: LinkOptions['warn']): Promise<void> {
  const primaries = commands.isCluster ? (commands as Cluster).nodes('master') : [commands]
  const policies = await Promise.all(primaries.map((primary) => evictionPolicyOf(primary as Redis)))
  const wrong = policies.find((policy) => policy !== undefined && policy !== 'noeviction')
  if (wrong !== undefined)
    throw new Error(
      `Redis has maxmemory-policy ${wrong}: set it to noeviction, or Redis deletes session owners and permissions`,
    )
  if (policies.includes(undefined))
    warn?.(
      'the maxmemory-policy of Redis cannot be read: make sure that it is noeviction, so that Redis deletes no keys',
    )
}

/** `undefined` if it may not be read. */
async function evictionPolicyOf(redis: Redis): Promise<string | undefined> {
  const info = await redis.info('memory').catch((cause: unknown) => {
    if (isForbidden(cause)) return ''
    throw cause
  })
  return /^maxmemory_policy:(\S+)/m.exec(info)?.[1]
}

const isForbidden = (cause: unknown): boolean => cause instanceof Error && /^(NOPERM|ERR unknown)/.test(cause.message)

function define(commands: RedisClient, { name, keys, lua }: Script): Command {
  commands.defineCommand(name, { lua, ...(keys !== 'any' && { numberOfKeys: keys }) })
  const command = (commands as unknown as Record<string, Command>)[name]
  if (!command) throw new Error(`the script ${name} was not defined`)
  return command.bind(commands)
}

/** Settles as `answer` does, or rejects after a second, and records whether Redis answered. */
async function tracked<T>(health: Health, answer: Promise<T>): Promise<T> {
  try {
    const value = await withDeadline(answer, COMMAND_MS, () => new Error('the command to Redis timed out'))
    health.answered()
    return value
  } catch (cause) {
    health.failed()
    throw cause
  }
}
