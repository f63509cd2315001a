import { LRUCache } from 'lru-cache'

/** In milliseconds. */
type Options = { ttl?: number; ttlResolution?: number }

/**
 * A cache that forgets its least recently used entry when it has more than `max`. It uses memory only for existing entries; `LRUCache` with its
 * option `max` reserves it for all: 218 KiB and a millisecond for 10,000.
 */
export const createCache = <K extends {}, V extends {}>(max: number, options: Options = {}): LRUCache<K, V> =>
  new LRUCache<K, V>({ ...options, maxSize: max, sizeCalculation: () => 1 })
