import { hash } from 'node:crypto'
import { createCache } from '../../kernel/cache.ts'
import type { KeySet } from './key-set.ts'
import type { Clock, Identity } from './port.ts'

const MAX_TOKENS = 10_000
const MAX_MS = 600_000

type Verified = { identity: Identity; untilMs: number }

/**
 * Caches verified tokens by their hash until they expire, for at most 10 minutes. The cache is emptied when the key set changes, so
 * that tokens of a removed key are refused. Refusals are not cached: forged tokens could fill the cache.
 */
export class VerifiedTokens {
  readonly #clock: Clock
  readonly #tokens = createCache<string, Verified>(MAX_TOKENS)
  #keySet: KeySet | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get(compact: string, keySet: KeySet): Identity | undefined {
    if (keySet !== this.#keySet) return undefined
    const verified = this.#tokens.get(digest(compact))
    return verified && this.#clock.monotonicMs() < verified.untilMs ? verified.identity : undefined
  }

  /** `expiresMs` is in milliseconds since the epoch. */
  add(compact: string, keySet: KeySet, { identity, expiresMs }: { identity: Identity; expiresMs: number }): void {
    if (keySet !== this.#keySet) this.#tokens.clear()
    this.#keySet = keySet
    const lifeMs = Math.min(expiresMs - this.#clock.epochMs(), MAX_MS)
    this.#tokens.set(digest(compact), { identity, untilMs: this.#clock.monotonicMs() + lifeMs })
  }
}

const digest = (compact: string) => hash('sha256', compact, 'base64')
