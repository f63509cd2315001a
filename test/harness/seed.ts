import { randomInt } from 'node:crypto'

const SEEDS = 2 ** 32

/** The given seed or a random one. Reports it in both cases, so that a failure can be replayed. Throws when it is not a whole number in range. */
export function chooseSeed(given: string | undefined, say: (line: string) => void): number {
  const seed = given === undefined ? randomInt(SEEDS) : Number(given)
  if (!Number.isInteger(seed) || seed < 0 || seed >= SEEDS || given === '')
    throw new Error(`the seed '${given}' is not a whole number from 0 to ${SEEDS - 1}`)
  say(`seed ${seed}`)
  return seed
}

/** A pseudo-random generator that a seed reproduces (mulberry32). Consumers do not share one: each takes its own `fork`. */
export class Random {
  readonly seed: number
  #state: number

  constructor(seed: number) {
    this.seed = seed
    this.#state = seed
  }

  /** A new generator. Its seed depends on the name and on this generator's seed only, not on what was drawn before. */
  fork(name: string): Random {
    return new Random(fnv1a(`${this.seed} ${name}`))
  }

  /** A number from 0 (included) to 1 (excluded). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let bits = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / SEEDS
  }

  /** An integer from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }

  /** `true` with the given probability. */
  chance(probability: number): boolean {
    return this.next() < probability
  }

  /** Throws on an empty list. */
  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Error('cannot pick from an empty list')
    return list[this.between(0, list.length - 1)] as T
  }

  shuffle<T>(list: readonly T[]): T[] {
    return list
      .map((value) => ({ value, at: this.next() }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ value }) => value)
  }
}

function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}
