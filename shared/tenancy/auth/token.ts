import { isUtf8 } from 'node:buffer'
import { parseJson } from '../../kernel/json.ts'
import { type Algorithm, isAlgorithm } from './algorithms.ts'
import { refused } from './refusals.ts'

/** The parts of a token, not verified yet. */
export type Token = {
  compact: string
  alg: Algorithm
  kid: string | undefined
  payload: string
  /** The signed part: header and payload. */
  signed: string
  signature: Buffer
}

/**
 * Parses a token (RFC 7515). The header only selects which of the issuer's keys to try. `jwk`, `jku`, `x5c` and `x5u` are ignored, and
 * `crit` is refused because no extension is supported.
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

/** Accepts the canonical encoding only, so that two different texts never are the same token. */
const isBase64url = (part: string) => part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part

/** Refuses other tokens of the same issuer, such as logout tokens (RFC 8725, section 3.11). */
const isAccessType = (typ: unknown) =>
  typ === undefined || (typeof typ === 'string' && /^(application\/)?(at\+)?jwt$/i.test(typ))

/** Decodes the JSON object in a part of a token. It has no prototype, so an absent claim is always `undefined`. */
export function parseObject(part: string): Record<string, unknown> {
  const bytes = Buffer.from(part, 'base64url')
  const value = isUtf8(bytes) ? parseJson(new TextDecoder().decode(bytes)) : undefined
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refused('malformed')
  return Object.assign(Object.create(null), value)
}
