import { type RedisOptions as ClientOptions, Cluster, Redis } from 'ioredis'
import { connectionOptions, type RedisOptions } from '../config/redis-place.ts'

/** One Redis, or the primary that sentinels name; or a Redis Cluster. Both have the same commands. */
export type RedisClient = Redis | Cluster

/** How long a command may take, and whether it waits while there is no connection. */
export type ClientTimes = {
  commandTimeout?: number
  connectTimeout?: number
  /** `null`: a command waits for a connection for as long as it takes. */
  maxRetriesPerRequest: number | null
  enableOfflineQueue?: boolean
  autoResubscribe?: boolean
  /** In a Redis Cluster, opens a connection for subscriptions to each node as well; the client ends when it has lost all nodes. */
  subscribes?: boolean
}

type ConnectionTimes = Omit<ClientTimes, 'subscribes'>
type ClusterParts = { nodes: NonNullable<RedisOptions['cluster']>; subscribes: boolean }

/** ioredis selects the types of its replies by this option: with it no single constructor signature matches. */
type Unmapped = { replyMapping?: never }

const RETRY_MAX_MS = 500
/** How often a command is repeated when its slot is moving to another node, or its node is being replaced. */
const MAX_REDIRECTIONS = 6
const REDIRECT_MS = 100
/** How often the slots' nodes are read, in addition to each time that a command is redirected. */
const SLOTS_EVERY_MS = 5_000

/** Waits longer after each attempt to connect, in ms. */
export const retryStrategy = (attempt: number): number => Math.min(50 * attempt, RETRY_MAX_MS)

/** Connects when the first command is sent, or `connect` is called. Errors are ignored: each command reports its own failure. */
export function createRedisClient(url: string, options: RedisOptions, times: ClientTimes): RedisClient {
  const { subscribes = false, ...rest } = times
  const { cluster } = options
  const client = cluster ? createCluster(url, { nodes: cluster, subscribes }, rest) : createSingle(url, options, rest)
  client.on('error', () => {})
  return client
}

function createSingle(url: string, options: RedisOptions, times: ConnectionTimes): Redis {
  const all: ClientOptions & Unmapped = {
    ...times,
    retryStrategy,
    lazyConnect: true,
    noDelay: true,
    ...(connectionOptions(url, options) as Unmapped),
  }
  return new Redis(url, all)
}

/** User, password and TLS are those of the address. A certificate must have the node name that the cluster reports. */
function createCluster(url: string, { nodes, subscribes }: ClusterParts, times: ConnectionTimes): Cluster {
  const { enableOfflineQueue, ...perNode } = times
  const { username, password, protocol } = new URL(url)
  const isTls = protocol === 'rediss:'
  const client = new Cluster([...nodes], {
    lazyConnect: true,
    enableOfflineQueue,
    shardedSubscribers: subscribes,
    maxRedirections: MAX_REDIRECTIONS,
    retryDelayOnFailover: REDIRECT_MS,
    retryDelayOnClusterDown: REDIRECT_MS,
    retryDelayOnTryAgain: REDIRECT_MS,
    slotsRefreshTimeout: perNode.commandTimeout,
    slotsRefreshInterval: 0,
    clusterRetryStrategy: subscribes ? null : retryStrategy,
    ...(isTls && { dnsLookup: (address: string, found: (err: null, address: string) => void) => found(null, address) }),
    redisOptions: {
      ...(perNode as ConnectionTimes & Unmapped),
      noDelay: true,
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
      ...(isTls && { tls: {} }),
    },
  })
  readSlotsRegularly(client)
  return client
}

/** Replaces `slotsRefreshInterval` of ioredis, whose timer is never cleared when the client is closed while it reads the slots. */
function readSlotsRegularly(client: Cluster): void {
  let timer: NodeJS.Timeout | undefined
  client.on('ready', () => {
    timer ??= setInterval(() => client.refreshSlotsCache(), SLOTS_EVERY_MS).unref()
  })
  client.on('end', () => {
    clearInterval(timer)
    timer = undefined
  })
}
