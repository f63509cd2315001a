import { AppError } from '../../kernel/errors.ts'
import { parseJson } from '../../kernel/json.ts'
import type { Log } from '../../kernel/log.ts'
import { truncate } from '../../kernel/text.ts'
import type { Clock, HttpAnswer, HttpGet } from './port.ts'

/** One key as an issuer publishes it (RFC 7517). */
export type Jwk = Readonly<Record<string, unknown>>

export type IssuerOptions = {
  issuer: string
  /** Address of the keys. When `undefined`, the issuer's discovery document names it (D1.3 OIDC_JWKS_URI). */
  jwksUri: string | undefined
  get: HttpGet
  clock: Clock
  log: Log
}

const LIMITS = { maxBytes: 256 * 1024, timeoutMs: 3_000 }
const MAX_KEYS = 100
const DISCOVERY_MS = 600_000
const MAX_SKEW_MS = 60_000

/**
 * Creates the function that fetches the issuer's keys: one request, or two when the discovery document has to be read. Throws
 * `upstream`.
 */
export function createReadKeys(options: IssuerOptions): () => Promise<Jwk[]> {
  const { jwksUri, clock } = options
  let found: { uri: string; atMs: number } | undefined
  const locate = async () => {
    const nowMs = clock.monotonicMs()
    if (found && nowMs - found.atMs < DISCOVERY_MS) return found.uri
    found = { uri: await discover(options), atMs: nowMs }
    return found.uri
  }
  return async () => {
    try {
      const answer = await get(jwksUri ?? (await locate()), options)
      checkClock(answer, options)
      return keysOf(await readJson(answer))
    } catch (cause) {
      found = undefined // The keys may have a new address.
      throw cause
    }
  }
}

/** OpenID Connect Discovery 1.0, section 4. */
async function discover(options: IssuerOptions): Promise<string> {
  const { issuer } = options
  const answer = await get(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, options)
  const { issuer: named, jwks_uri: uri } = await readJson(answer)
  if (named !== issuer) {
    throw unusable(`the discovery document names the issuer ${show(named)}; OIDC_ISSUER must be exactly the same`)
  }
  const protocol = typeof uri === 'string' ? URL.parse(uri)?.protocol : undefined
  const isSafe = protocol === 'https:' || (protocol === 'http:' && issuer.startsWith('http:'))
  if (typeof uri !== 'string' || !isSafe) throw unusable(`the discovery document names ${show(uri)} as its jwks_uri`)
  return uri
}

/** Renders a value of the issuer's document for the log. */
const show = (value: unknown) => truncate(JSON.stringify(value ?? null), 200)

async function get(url: string, options: IssuerOptions): Promise<HttpAnswer> {
  const answer = await options.get(url, { ...LIMITS, signal: new AbortController().signal })
  if (answer.status === 200) return answer
  answer.discard()
  throw unusable(`${url} answered with status ${answer.status}`)
}

async function readJson({ body }: HttpAnswer): Promise<Record<string, unknown>> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  const value = parseJson(Buffer.concat(chunks).toString())
  if (typeof value !== 'object' || value === null) throw unusable('the answer is not a JSON object')
  return { ...value }
}

function keysOf({ keys }: Record<string, unknown>): Jwk[] {
  if (!Array.isArray(keys)) throw unusable('the key set has no list of keys')
  if (keys.length > MAX_KEYS) throw unusable(`the key set has more than ${MAX_KEYS} keys`)
  return keys.filter((key): key is Jwk => typeof key === 'object' && key !== null)
}

/**
 * Logs a difference between the clocks: this machine's clock decides whether a token has expired, so a wrong one refuses valid
 * tokens.
 */
function checkClock({ headers }: HttpAnswer, { clock, log }: IssuerOptions): void {
  const sentMs = Date.parse(String(headers['date'])) + Number(headers['age'] ?? 0) * 1000
  const skewMs = clock.epochMs() - sentMs
  if (!(Math.abs(skewMs) > MAX_SKEW_MS)) return // Also when the answer has no usable date: NaN is not greater.
  log.warn("this machine's clock differs from the identity provider's", { ahead_secs: Math.round(skewMs / 1000) })
}

const unusable = (message: string) => new AppError('upstream', message)
