/** How the Redis of a cluster is used, besides its address. */
export type RedisOptions = {
  /** Every key and channel begins with it, so that several clusters can share one Redis (CLUSTER_NAME). */
  clusterName?: string
  /** Sentinels name the present primary; they replace the host in the address (REDIS_SENTINELS). */
  sentinels?: Sentinels | undefined
  /** Nodes of a Redis Cluster, which replace the host in the address (REDIS_CLUSTER). They name the other nodes. */
  cluster?: readonly RedisNode[] | undefined
}

export type RedisNode = { host: string; port: number }

/** The sentinels, and the name under which they watch the primary. */
export type Sentinels = { hosts: readonly RedisNode[]; primary: string }

export const prefixOf = ({ clusterName = 'ae' }: RedisOptions): string => `${clusterName}:`

type RedisSettings = {
  redisUrl: string | undefined
  clusterName: string
  redisSentinels: Sentinels | undefined
  redisCluster: readonly RedisNode[] | undefined
}

/** The address and the options that the settings name, as the arguments of whatever connects to Redis. */
export const redisOf = ({
  redisUrl = 'redis://',
  clusterName,
  redisSentinels: sentinels,
  redisCluster: cluster,
}: RedisSettings): [url: string, options: RedisOptions] => [redisUrl, { clusterName, sentinels, cluster }]

/** Connects again and repeats the command. */
const RECONNECT_AND_REPEAT = 2

/**
 * The options of ioredis besides the address. User, password, database and TLS are those of the address, also with sentinels. A server
 * that has become a replica refuses to write; then the client reconnects to the present primary.
 */
export const connectionOptions = (url: string, { sentinels }: RedisOptions) => ({
  reconnectOnError: ({ message }: Error) => (message.startsWith('READONLY') ? RECONNECT_AND_REPEAT : false),
  ...(sentinels && {
    sentinels: [...sentinels.hosts],
    name: sentinels.primary,
    ...(url.startsWith('rediss:') && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
  }),
})
