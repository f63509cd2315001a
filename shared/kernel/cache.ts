import { LRUCache } from 'lru-cache'

/** In milliseconds. */
type Options = { ttl?: number; ttlResolution?: number }

/**
 * A cache that forgets the entry that was not used for the longest time once it has more than `max`. It takes memory for the entries that it has;
 * that of `LRUCache` with its option `max` is reserved for all: 218 KiB and a millisecond for 10,000.
 */
export const createCache = <K extends {}, V extends {}>(max: number, options: Options = {}): LRUCache<K, V> =>
  new LRUCache<K, V>({ ...options, maxSize: max, sizeCalculation: () => 1 })
