import { randomInt } from 'node:crypto'

const SEEDS = 2 ** 32

/** The seed given, or a new one; says it either way, so that whatever goes wrong can be played again. */
export function chooseSeed(given: string | undefined, say: (line: string) => void): number {
  const seed = given === undefined ? randomInt(SEEDS) : Number(given)
  if (!Number.isInteger(seed) || seed < 0 || seed >= SEEDS || given === '')
    throw new Error(`the seed '${given}' is no whole number from 0 to ${SEEDS - 1}`)
  say(`seed ${seed}`)
  return seed
}

/** Chance that a seed replays (mulberry32). No two consumers share one: each takes its own `fork`. */
export class Random {
  readonly seed: number
  #state: number

  constructor(seed: number) {
    this.seed = seed
    this.#state = seed
  }

  /** A source of its own, which the name and this one's seed decide, whatever has been drawn here before. */
  fork(name: string): Random {
    return new Random(fnv1a(`${this.seed} ${name}`))
  }

  /** From 0 up to, but not including, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let bits = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / SEEDS
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  /** Throws on an empty list. */
  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Error('there is nothing to pick from')
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
