import { AppError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { KeySet } from './key-set.ts'

/** Over this age the keys are fetched anew behind the requests' backs … */
const FRESH_MS = 300_000
/** … over this one before they are used again, so that a removed key is refused within 10 minutes … */
const OLD_MS = 600_000
/** … and over this one they are not used at all: an outage of an hour is survived from any age below (T_jwks). */
const USABLE_MS = OLD_MS + 3_600_000

/** D3.1: how often a token that no key verifies may make us ask again. */
const MISS_MS = 10_000

const FIRST_RETRY_MS = 1_000
const LAST_RETRY_MS = 30_000

export type KeySourceDeps = { read: () => Promise<KeySet>; monotonicMs: () => number; log: Log }

/**
 * The issuer's keys, asked for as seldom as can be: one fetch at a time, after a failure not before the back-off is over.
 * fresh -> ageing (fetched behind) -> old (fetched before use, unless that has just failed) -> expired (as if never fetched).
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

  /** Throws `unavailable` when there is no usable key set and none can be had. */
  async current(): Promise<KeySet> {
    const ageMs = this.#ageMs()
    if (ageMs >= FRESH_MS) {
      const refresh = this.#refresh()
      if (ageMs >= USABLE_MS || (ageMs >= OLD_MS && this.#failures === 0)) await refresh
    }
    if (this.#keySet && this.#ageMs() < USABLE_MS) return this.#keySet
    throw this.outage()
  }

  /** The key set after `seen`, which did not verify a token; `seen` itself where there is no newer one. */
  async newerThan(seen: KeySet): Promise<KeySet> {
    const mayAsk = this.#pending !== undefined || this.#deps.monotonicMs() - this.#triedAt >= MISS_MS
    if (this.#keySet === seen && mayAsk) await this.#refresh()
    return this.#keySet ?? seen
  }

  /** The last time that it was asked, the issuer did not answer: a key that is not there may exist nevertheless. */
  get isCutOff(): boolean {
    return this.#failures > 0
  }

  outage(): AppError {
    const retryAfterSecs = Math.max(1, Math.ceil((this.#retryAt - this.#deps.monotonicMs()) / 1000))
    const message = `the token cannot be checked: the identity provider does not answer; try again in ${retryAfterSecs} s`
    return new AppError('unavailable', message, { retryAfterSecs })
  }

  /** Nothing to wait for while the back-off lasts. Never rejects. */
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
      this.#take(await this.#deps.read())
    } catch (cause) {
      this.#fail(cause)
    }
  }

  /** An unchanged set stays the object it was: what is known of its tokens stays true. */
  #take(keySet: KeySet): void {
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
