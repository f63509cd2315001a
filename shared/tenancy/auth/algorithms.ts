import type { KeyObject } from 'node:crypto'

/** The accepted signature algorithms (D3.1), with the curve of each ECDSA algorithm. */
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

/** RFC 7518 requires 2,048 bits. Above 8,192 bits a verification takes too much CPU time. */
const MIN_RSA_BITS = 2_048
export const MAX_RSA_BITS = 8_192

/** Tells whether a key can verify signatures of an algorithm. EdDSA means Ed25519, the only Edwards curve that jwks-rsa reads. */
export function isKeyFor(
  alg: Algorithm,
  { asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject,
): boolean {
  if (alg === 'EdDSA') return type === 'ed25519'
  const curve = CURVES[alg]
  if (curve !== undefined) return type === 'ec' && details.namedCurve === curve
  const { modulusLength: bits = 0, publicExponent = 0n } = details
  return type === 'rsa' && bits >= MIN_RSA_BITS && bits <= MAX_RSA_BITS && publicExponent >= 3n
}
