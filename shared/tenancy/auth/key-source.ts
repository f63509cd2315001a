import { AppError } from '../../kernel/errors.ts'
import type { Log } from '../../kernel/log.ts'
import type { KeySet } from './key-set.ts'

/** Keys of this age or older are fetched again in the background. */
const FRESH_MS = 300_000
/** Keys of this age or older are fetched before they are used, so that a removed key is refused within 10 minutes. */
const OLD_MS = 600_000
/** Keys of this age or older are not used. So keys of any age below `OLD_MS` survive an outage of one hour. */
const USABLE_MS = OLD_MS + 3_600_000

/** Minimum time between two fetches that are caused by tokens with an unknown key (D3.1). */
const MISS_MS = 10_000

const FIRST_RETRY_MS = 1_000
const LAST_RETRY_MS = 30_000

export type KeySourceDeps = { read: () => Promise<KeySet>; monotonicMs: () => number; log: Log }

/**
 * Holds the issuer's keys and fetches them again when they get old: one fetch at a time, and none during the back-off after a failure.
 * fresh -> ageing (fetched in the background) -> old (fetched before use, unless the last fetch failed) -> expired (not used).
 */
export class KeySource {
  readonly #deps: KeySourceDeps
  #keySet: KeySet | undefined
  #readAt = Number.NEGATIVE_INFINITY
  #triedAt = Number.NEGATIVE_INFINITY
  #retryAt = Number.NEGATIVE_INFINITY
  #failures = 0
  #pending: Promise<void> | undefined

  constructor(deps: KeySourceDeps) {
    this.#deps = deps
  }

  /** Returns a usable key set. Throws `unavailable` when there is none and none can be fetched. */
  async current(): Promise<KeySet> {
    const ageMs = this.#ageMs()
    if (ageMs >= FRESH_MS) {
      const refresh = this.#refresh()
      if (ageMs >= USABLE_MS || (ageMs >= OLD_MS && this.#failures === 0)) await refresh
    }
    if (this.#keySet && this.#ageMs() < USABLE_MS) return this.#keySet
    throw this.outage()
  }

  /** Returns a key set newer than `seen`, which did not verify a token, or `seen` when there is none. */
  async newerThan(seen: KeySet): Promise<KeySet> {
    const canFetch = this.#pending !== undefined || this.#deps.monotonicMs() - this.#triedAt >= MISS_MS
    if (this.#keySet === seen && canFetch) await this.#refresh()
    return this.#keySet ?? seen
  }

  /** True when the last fetch failed. A key that is missing here may then exist at the issuer. */
  get isIssuerAway(): boolean {
    return this.#failures > 0
  }

  /** The error for a token that cannot be checked until the issuer answers. */
  outage(): AppError {
    const retryAfterSecs = Math.max(1, Math.ceil((this.#retryAt - this.#deps.monotonicMs()) / 1000))
    const message = `the token cannot be checked: the identity provider does not answer; try again in ${retryAfterSecs} s`
    return new AppError('unavailable', message, { retryAfterSecs })
  }

  /** Fetches the keys, or returns the fetch in progress, or `undefined` during the back-off. Never rejects. */
  #refresh(): Promise<void> | undefined {
    if (this.#pending || this.#deps.monotonicMs() < this.#retryAt) return this.#pending
    this.#pending = this.#read().finally(() => {
      this.#pending = undefined
    })
    return this.#pending
  }

  async #read(): Promise<void> {
    this.#triedAt = this.#deps.monotonicMs()
    try {
      this.#accept(await this.#deps.read())
    } catch (cause) {
      this.#fail(cause)
    }
  }

  /** An unchanged set keeps its object identity, because `VerifiedTokens` forgets its tokens when the object changes. */
  #accept(keySet: KeySet): void {
    const { log } = this.#deps
    if (this.#failures > 0) log.info('the identity provider answers again', { failures: this.#failures })
    this.#failures = 0
    this.#readAt = this.#triedAt
    if (keySet.fingerprint === this.#keySet?.fingerprint) return
    this.#keySet = keySet
    if (keySet.size > 0) log.info("the identity provider's keys are new", { keys: keySet.size })
    else log.warn('the identity provider publishes no usable key: every token is refused')
  }

  #fail(cause: unknown): void {
    const waitMs = Math.min(FIRST_RETRY_MS * 2 ** this.#failures, LAST_RETRY_MS)
    this.#failures++
    this.#retryAt = this.#deps.monotonicMs() + waitMs
    this.#deps.log.warn("the identity provider's keys could not be fetched", {
      ...(cause instanceof AppError ? { reason: cause.message } : { cause }),
      failures: this.#failures,
      retry_secs: waitMs / 1000,
    })
  }

  #ageMs(): number {
    return this.#deps.monotonicMs() - this.#readAt
  }
}
