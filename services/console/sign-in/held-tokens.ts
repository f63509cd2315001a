/** `expiresAt`: by this machine's clock. `id`: the ID token, which tells the issuer at sign-out which sign-in ends. */
export type Tokens = { access: string; refresh: string | undefined; id?: string | undefined; expiresAt: number }

/** The issuer has answered and refused a token. Other failures say nothing about the person's sign-in. */
export class Refused extends Error {}

/** A token is renewed when it has less than this left. */
const RENEW_MS = 30_000
/** An issuer that is away is asked again after this time. */
const RETRY_MS = 2_000

type Deps = {
  /** Throws `Refused` where the issuer refuses. */
  renew(refresh: string): Promise<Tokens>
  /** The person has to sign in again. Until `take`, requests wait for that. */
  onExpired(problem: string): void
  now?(): number
}

/**
 * The tokens of a person who is signed in.
 * good -> good: renewed. good -> expired: over, or refused by the server, and not renewed. expired -> good: signed in again.
 */
export class HeldTokens {
  #tokens: Tokens
  readonly #deps: Deps
  readonly #now: () => number
  #renewing: Promise<void> | undefined
  #again: PromiseWithResolvers<void> | undefined
  #retryAt = 0
  #problem: string | undefined

  constructor(tokens: Tokens, deps: Deps) {
    this.#tokens = tokens
    this.#deps = deps
    this.#now = deps.now ?? Date.now
  }

  get newest(): Tokens {
    return this.#tokens
  }

  /** Returns a token that is valid as far as known. `refused`: the token that the server has just refused. */
  readonly token = async (refused?: string): Promise<string> => {
    for (;;) {
      if (this.#isGood(refused, RENEW_MS)) return this.#tokens.access
      const { refresh } = this.#tokens
      if (refresh !== undefined && this.#now() >= this.#retryAt) await this.#renewOnce(refresh)
      if (this.#isGood(refused, 0)) return this.#tokens.access
      await this.#expire()
    }
  }

  /** The person has signed in again. */
  take(tokens: Tokens): void {
    this.#tokens = tokens
    this.#retryAt = 0
    this.#problem = undefined
    this.#again?.resolve()
    this.#again = undefined
  }

  /** Renews the token because the person has asked for it. Throws when it cannot be renewed. */
  async retry(): Promise<void> {
    if (this.#tokens.refresh === undefined) throw new Refused('Your sign-in has expired.')
    this.take(await this.#deps.renew(this.#tokens.refresh))
  }

  #isGood(refused: string | undefined, leftMs: number): boolean {
    return this.#tokens.access !== refused && this.#tokens.expiresAt - this.#now() > leftMs
  }

  /** Requests that need a token at the same time share one renewal: many issuers accept a refresh token once. */
  #renewOnce(refresh: string): Promise<void> {
    this.#renewing ??= this.#renew(refresh).finally(() => (this.#renewing = undefined))
    return this.#renewing
  }

  async #renew(refresh: string): Promise<void> {
    try {
      this.#tokens = await this.#deps.renew(refresh)
    } catch (cause) {
      this.#problem = cause instanceof Error ? cause.message : String(cause)
      // A network failure is not a refusal: the refresh token stays for the next attempt.
      if (cause instanceof Refused) this.#tokens = { ...this.#tokens, refresh: undefined }
      else this.#retryAt = this.#now() + RETRY_MS
    }
  }

  #expire(): Promise<void> {
    if (this.#again === undefined) {
      this.#again = Promise.withResolvers()
      this.#deps.onExpired(this.#problem ?? 'Your sign-in has expired.')
    }
    return this.#again.promise
  }
}
