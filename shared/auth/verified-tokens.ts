import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { KeySet } from './key-set.ts'
import type { Clock, Identity } from './port.ts'

/** reliability.md rule 13. */
const MAX_TOKENS = 10_000
const MAX_MS = 600_000

type Verified = { identity: Identity; untilMs: number }

/**
 * Tokens that were verified, by their hash, until they expire, 10 minutes at most; all forgotten when the key set changes, so
 * that a removed key takes its tokens with it. A refusal is not remembered: forgers could fill the cache with them.
 */
export class VerifiedTokens {
  readonly #clock: Clock
  readonly #tokens = new LRUCache<string, Verified>({ max: MAX_TOKENS })
  #keySet: KeySet | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get(compact: string, keySet: KeySet): Identity | undefined {
    if (keySet !== this.#keySet) return undefined
    const verified = this.#tokens.get(digest(compact))
    return verified && this.#clock.monotonicMs() < verified.untilMs ? verified.identity : undefined
  }

  /** `expiresMs` is of the epoch. */
  add(compact: string, keySet: KeySet, { identity, expiresMs }: { identity: Identity; expiresMs: number }): void {
    if (keySet !== this.#keySet) this.#tokens.clear()
    this.#keySet = keySet
    const lifeMs = Math.min(expiresMs - this.#clock.epochMs(), MAX_MS)
    this.#tokens.set(digest(compact), { identity, untilMs: this.#clock.monotonicMs() + lifeMs })
  }
}

const digest = (compact: string) => hash('sha256', compact, 'base64')
