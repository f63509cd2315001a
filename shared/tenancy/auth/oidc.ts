import { hash, type KeyObject, verify } from 'node:crypto'
import jsonwebtoken from 'jsonwebtoken'
import { createCache } from '../../kernel/cache.ts'
import type { Log } from '../../kernel/log.ts'
import { DEFAULT_TENANT } from '../../kernel/tenant.ts'
import { type ClaimRules, readClaims } from './claims.ts'
import { createReadKeySet, type KeySet } from './key-set.ts'
import { KeySource } from './key-source.ts'
import type { Clock, HttpGet, Identify, Identity } from './port.ts'
import { createReadKeys } from './published-keys.ts'
import { noToken, refused } from './refusals.ts'
import { parseObject, parseToken, type Token } from './token.ts'

export type OidcOptions = ClaimRules & {
  /** `legacy` with an issuer means `enforced` (api.md "Authentication" 6). */
  mode: 'legacy' | 'soft' | 'enforced'
  jwksUri: string | undefined
  get: HttpGet
  log: Log
  clock?: Clock
}

const SYSTEM_CLOCK: Clock = { monotonicMs: () => performance.now(), epochMs: () => Date.now() }

/**
 * Authenticates by access tokens of one OIDC issuer (api.md "Authentication" 2, D3). Nothing is fetched from the issuer before the
 * first token arrives, so a process starts while the issuer is down.
 */
export function createOidcIdentify(options: OidcOptions): Identify {
  const { mode, log, clock = SYSTEM_CLOCK } = options
  const read = createReadKeySet(createReadKeys({ ...options, clock }))
  const keys = new KeySource({ read, monotonicMs: clock.monotonicMs, log })
  const verifyToken = createVerify({ keys, rules: options, clock })
  const defaultIdentity = mode === 'soft' ? createDefaultIdentity(log, clock) : undefined
  return async (authorization = '') => {
    if (authorization !== '') return verifyToken(bearerOf(authorization))
    if (defaultIdentity) return defaultIdentity()
    throw noToken()
  }
}

/** A scheme other than Bearer is refused like a missing token, also in soft mode. */
function bearerOf(authorization: string): string {
  if (!/^bearer( |$)/i.test(authorization)) throw noToken()
  return authorization.slice('bearer'.length).trim()
}

const MAX_CHARS = 8_192

type VerifyDeps = { keys: KeySource; rules: ClaimRules; clock: Clock }

/** Verifies tokens, cheap checks first: length, form, cache, signature, claims. */
function createVerify({ keys, rules, clock }: VerifyDeps): (compact: string) => Promise<Identity> {
  const verified = new VerifiedTokens(clock)
  return async (compact) => {
    if (compact.length > MAX_CHARS) throw refused('too_long')
    const token = parseToken(compact)
    const current = await keys.current()
    const known = verified.get(compact, current)
    if (known) return known
    const keySet = await verifyingSet(token, current, keys)
    const claims = readClaims(parseObject(token.payload), rules, clock.epochMs())
    verified.add(compact, keySet, claims)
    return claims.identity
  }
}

/** Returns the key set that verifies the token: the current one, or a newer one when the issuer may have changed its keys. */
async function verifyingSet(token: Token, current: KeySet, keys: KeySource): Promise<KeySet> {
  if (isVerified(token, current)) return current
  const newer = await keys.newerThan(current)
  if (newer !== current && isVerified(token, newer)) return newer
  if (newer.find(token.kid, token.alg)) throw refused('signature')
  throw keys.isIssuerAway ? keys.outage() : refused('key')
}

function isVerified(token: Token, keySet: KeySet): boolean {
  const key = keySet.find(token.kid, token.alg)
  return key !== undefined && isSignedBy(token, key)
}

const NOTICE_MS = 60_000

/** Returns the identity for requests without a token in soft mode, and logs a warning at most once a minute. */
function createDefaultIdentity(log: Log, { monotonicMs }: Clock): () => Identity {
  let requests = 0
  let loggedAt = Number.NEGATIVE_INFINITY
  return () => {
    requests++
    if (monotonicMs() - loggedAt >= NOTICE_MS) {
      log.warn('requests without a token are deprecated: AUTH_MODE=enforced will refuse them', { requests })
      loggedAt = monotonicMs()
      requests = 0
    }
    return { tenant: DEFAULT_TENANT, subject: 'anonymous' }
  }
}

/**
 * Tells whether this key signed the token. The caller has checked that the key can verify the token's algorithm. Claims are not
 * checked. jsonwebtoken does not support EdDSA (RFC 8037), so Node's crypto verifies that.
 */
function isSignedBy(token: Token, key: KeyObject): boolean {
  if (token.alg === 'EdDSA') return verify(null, Buffer.from(token.signed), key, token.signature)
  try {
    jsonwebtoken.verify(token.compact, key, { algorithms: [token.alg], ignoreExpiration: true, ignoreNotBefore: true })
    return true
  } catch {
    return false // jsonwebtoken throws for every kind of invalid token.
  }
}

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
