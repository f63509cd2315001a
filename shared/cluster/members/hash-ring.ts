const POINTS_PER_MEMBER = 160
/** The upper bits of a point choose its bucket: with 1,000 members each bucket has about 80 points. */
const BUCKET_BITS = 11
const BUCKETS = 1 << BUCKET_BITS
const SHIFT = 32 - BUCKET_BITS
const LOWER_BITS = 2 ** SHIFT - 1
const MEMBERS = 2 ** 32
/** The most members that are added in one call: that takes about a millisecond before V8 has compiled the code, and a tenth of that later. */
const MAX_JOINS = 8

/**
 * A consistent-hashing ring of 2^32 positions. Each member has 160 points on it, and a key belongs to the member with the first
 * point at or after the key's hash. A member that joins or leaves therefore moves only the keys it gains or loses.
 */
export class HashRing {
  readonly #members = new Set<number>()
  /** Each entry is a point without its upper bits, times 2^32, plus the member. Sorted; if two members share a point, the lower one comes first. */
  #buckets: number[][] = []

  /** Members are epochs (u32). */
  static of(members: Iterable<number>): HashRing {
    const ring = new HashRing()
    for (const member of new Set(members)) ring.#add(member)
    return ring
  }

  get members(): ReadonlySet<number> {
    return this.#members
  }

  /** Removes all members that are not among these, and adds up to 8 that are missing. Returns whether none is missing any more. */
  follow(members: ReadonlySet<number>): boolean {
    for (const member of this.#members.difference(members)) this.#remove(member)
    let joins = 0
    for (const member of members) {
      if (this.#members.has(member)) continue
      if (joins++ === MAX_JOINS) return false
      this.#add(member)
    }
    return true
  }

  /** The member that a key belongs to, or would belong to if `without` were not on the ring; `undefined` if there is none. */
  ownerOf(key: string, without?: number): number | undefined {
    if (this.#members.size === 0) return undefined
    const hash = hashOf(key)
    const first = hash >>> SHIFT
    let bucket = this.#buckets[first] as number[]
    let at = placeOf(bucket, lowerPart(hash))
    // The last bucket is the first one again, for the points before the hash.
    for (let n = 1; n <= BUCKETS + 1; n++) {
      for (; at < bucket.length; at++) {
        const member = (bucket[at] as number) >>> 0
        if (member !== without) return member
      }
      bucket = this.#buckets[(first + n) % BUCKETS] as number[]
      at = 0
    }
    return undefined
  }

  #add(member: number): void {
    if (this.#buckets.length === 0) this.#buckets = Array.from({ length: BUCKETS }, () => [])
    this.#members.add(member)
    for (const point of pointsOf(member)) {
      const [bucket, entry] = [this.#bucketOf(point), lowerPart(point) + member]
      bucket.splice(placeOf(bucket, entry), 0, entry)
    }
  }

  #remove(member: number): void {
    this.#members.delete(member)
    for (const point of pointsOf(member)) {
      const bucket = this.#bucketOf(point)
      bucket.splice(placeOf(bucket, lowerPart(point) + member), 1)
    }
  }

  #bucketOf(point: number): number[] {
    return this.#buckets[point >>> SHIFT] as number[]
  }
}

const lowerPart = (point: number): number => (point & LOWER_BITS) * MEMBERS

function pointsOf(member: number): number[] {
  const seed = mix(member)
  const points: number[] = []
  for (let i = 1; i <= POINTS_PER_MEMBER; i++) points.push(mix(seed + Math.imul(i, 0x9e3779b1)))
  return points
}

/** The index of the first entry that is not below this one. */
function placeOf(bucket: readonly number[], entry: number): number {
  let [low, high] = [0, bucket.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((bucket[middle] as number) < entry) low = middle + 1
    else high = middle
  }
  return low
}

/** FNV-1a over the UTF-16 units, then mixed, since FNV alone gives short keys nearly the same upper bits. */
function hashOf(key: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  return mix(hash)
}

/** MurmurHash3's finalizer. */
function mix(value: number): number {
  let hash = value
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
