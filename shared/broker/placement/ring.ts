const POINTS_PER_MEMBER = 160
const BUCKETS = 1 << 16

/**
 * A consistent-hashing ring of 2^32 positions. Each member has 160 points on it, and a key belongs to the member with the first
 * point at or after the key's hash. A member that joins or leaves therefore moves only the keys it gains or loses. Immutable:
 * `join` and `leave` return a new ring.
 */
export class Ring {
  /** Sorted; the member at `points[i]` is `members[i]`. */
  readonly #points: Uint32Array
  readonly #members: Uint32Array
  /** For each value of the upper 16 bits of a hash, the index of the first point from which a lookup has to search. */
  readonly #starts: Uint32Array

  private constructor(points: Uint32Array, members: Uint32Array) {
    this.#points = points
    this.#members = members
    this.#starts = startsOf(points)
  }

  static readonly EMPTY = new Ring(new Uint32Array(0), new Uint32Array(0))

  /** Members are epochs (u32) without duplicates. */
  static of(members: readonly number[]): Ring {
    const placed = members.flatMap((member) => Array.from(pointsOf(member), (point) => [point, member] as const))
    placed.sort(([a, memberA], [b, memberB]) => a - b || memberA - memberB)
    return new Ring(
      Uint32Array.from(placed, ([point]) => point),
      Uint32Array.from(placed, ([, member]) => member),
    )
  }

  /** The member that a key belongs to; `undefined` on an empty ring. */
  ownerOf(key: string): number | undefined {
    if (this.#points.length === 0) return undefined
    const hash = hashOf(key)
    let at = this.#starts[hash >>> 16] ?? 0
    while (at < this.#points.length && (this.#points[at] ?? 0) < hash) at++
    return this.#members[at % this.#points.length]
  }

  join(member: number): Ring {
    const added = pointsOf(member)
    const size = this.#points.length + added.length
    const [points, members] = [new Uint32Array(size), new Uint32Array(size)]
    let nextAdded = 0
    let nextOld = 0
    for (let at = 0; at < size; at++) {
      const [a, b] = [added[nextAdded] ?? Infinity, this.#points[nextOld] ?? Infinity]
      const isAdded = a < b || (a === b && member < (this.#members[nextOld] ?? 0))
      points[at] = isAdded ? a : b
      members[at] = isAdded ? member : (this.#members[nextOld] ?? 0)
      if (isAdded) nextAdded++
      else nextOld++
    }
    return new Ring(points, members)
  }

  leave(member: number): Ring {
    const isKept = (_: number, at: number) => this.#members[at] !== member
    return new Ring(this.#points.filter(isKept), this.#members.filter(isKept))
  }
}

function pointsOf(member: number): Uint32Array {
  const points = new Uint32Array(POINTS_PER_MEMBER)
  for (let i = 0; i < POINTS_PER_MEMBER; i++) points[i] = mix(mix(member) + Math.imul(i + 1, 0x9e3779b1))
  return points.sort()
}

function startsOf(points: Uint32Array): Uint32Array {
  const starts = new Uint32Array(BUCKETS)
  let at = 0
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    while (at < points.length && (points[at] ?? 0) >>> 16 < bucket) at++
    starts[bucket] = at
  }
  return starts
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
