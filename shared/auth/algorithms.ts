import type { KeyObject } from 'node:crypto'

/** What a token may be signed with (D3.1), and the curve that goes with it. */
const CURVES = {
  RS256: undefined,
  RS384: undefined,
  RS512: undefined,
  PS256: undefined,
  PS384: undefined,
  PS512: undefined,
  ES256: 'prime256v1',
  ES384: 'secp384r1',
  ES512: 'secp521r1',
  EdDSA: undefined,
} as const

export type Algorithm = keyof typeof CURVES

export const isAlgorithm = (alg: unknown): alg is Algorithm => typeof alg === 'string' && Object.hasOwn(CURVES, alg)

/** RFC 7518 wants 2,048 bits; what is above 8,192 costs more to check than it is worth. */
const MIN_RSA_BITS = 2_048
export const MAX_RSA_BITS = 8_192

/** May this key verify this algorithm? EdDSA is Ed25519 here: jwks-rsa reads no other key of its family. */
export function fits(
  alg: Algorithm,
  { asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject,
): boolean {
  if (alg === 'EdDSA') return type === 'ed25519'
  const curve = CURVES[alg]
  if (curve !== undefined) return type === 'ec' && details.namedCurve === curve
  const { modulusLength: bits = 0, publicExponent = 0n } = details
  return type === 'rsa' && bits >= MIN_RSA_BITS && bits <= MAX_RSA_BITS && publicExponent >= 3n
}
