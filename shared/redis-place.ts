/** How the Redis of a cluster is used, besides its address. */
export type RedisOptions = {
  /** Every key and channel begins with it, so that several clusters can share one Redis (CLUSTER_NAME). */
  clusterName?: string
}

export const DEFAULT_CLUSTER_NAME = 'ae'

export const prefixOf = ({ clusterName = DEFAULT_CLUSTER_NAME }: RedisOptions): string => `${clusterName}:`

type RedisSettings = { redisUrl: string | undefined; clusterName: string }

/** The address and the options that the settings name, as the arguments of whatever connects to Redis. */
export const redisOf = ({ redisUrl = '', clusterName }: RedisSettings): [url: string, options: RedisOptions] => [
  redisUrl,
  { clusterName },
]
