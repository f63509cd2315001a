import { type Algorithm, isAlgorithm } from './algorithms.ts'
import { refused } from './refusals.ts'

/** A signed token as it came, nothing of it verified. */
export type Token = {
  compact: string
  alg: Algorithm
  kid: string | undefined
  payload: string
  /** What the signature is over. */
  signed: string
  signature: Buffer
}

/**
 * Takes a token apart (RFC 7515). The header decides nothing but which key of the issuer to try: `jwk`, `jku`, `x5c` and
 * `x5u` are not looked at, and `crit` is refused, since no extension is understood.
 */
export function parseToken(compact: string): Token {
  const [header = '', payload = '', signature = '', ...more] = compact.split('.', 4)
  const isWhole = [header, payload, signature].every(isBase64url) && more.length === 0
  if (!isWhole) throw refused('malformed')
  const { alg, kid, typ, crit } = parseObject(header)
  if (!isAlgorithm(alg)) throw refused('algorithm')
  if (crit !== undefined) throw refused('critical')
  if (!isAccessType(typ)) throw refused('type')
  if (kid !== undefined && typeof kid !== 'string') throw refused('malformed')
  const signed = compact.slice(0, compact.lastIndexOf('.'))
  return { compact, alg, kid, payload, signed, signature: Buffer.from(signature, 'base64url') }
}

/** Only the one canonical spelling, so that a token has no doubles. */
const isBase64url = (part: string) => part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part

/** Logout tokens, proofs and the like of the same issuer are no access tokens (RFC 8725, 3.11). */
const isAccessType = (typ: unknown) =>
  typ === undefined || (typeof typ === 'string' && /^(application\/)?(at\+)?jwt$/i.test(typ))

/** The JSON object in a part of a token, without a prototype: what is not in it is `undefined`. */
export function parseObject(part: string): Record<string, unknown> {
  const value = parseJson(Buffer.from(part, 'base64url'))
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refused('malformed')
  return Object.assign(Object.create(null), value)
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined // No UTF-8 or no JSON: no object either.
  }
}
