import { generateKeyPair, type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { exportJWK, type JWK } from 'jose'

export type Signer = {
  kid: string
  alg: string
  privateKey: KeyObject
  publicKey: KeyObject
  privateJwk: JWK
  publicJwk: JWK
}

const CURVES: Record<string, string> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }

const generate = promisify(generateKeyPair)

/** Creates a key pair as an issuer has it. Both JWKs contain `kid`, `alg` and `use`. */
export async function newSigner(alg: string, kid: string, bits = 2_048): Promise<Signer> {
  const { privateKey, publicKey } = await newPair(alg, bits)
  const marks = { kid, alg, use: 'sig' }
  return {
    kid,
    alg,
    privateKey,
    publicKey,
    privateJwk: { ...(await exportJWK(privateKey)), ...marks },
    publicJwk: { ...(await exportJWK(publicKey)), ...marks },
  }
}

function newPair(alg: string, modulusLength: number) {
  if (alg === 'EdDSA') return generate('ed25519')
  const namedCurve = CURVES[alg]
  return namedCurve === undefined ? generate('rsa', { modulusLength }) : generate('ec', { namedCurve })
}

export type Sign = (signed: Buffer) => Uint8Array

/** Builds a token from any header and payload. A value that is not a string becomes JSON. */
export function compact(header: unknown, payload: unknown, signWith: Sign): string {
  const signed = `${encode(header)}.${encode(payload)}`
  return `${signed}.${Buffer.from(signWith(Buffer.from(signed))).toString('base64url')}`
}

export function encode(part: unknown): string {
  return Buffer.from(typeof part === 'string' || Buffer.isBuffer(part) ? part : JSON.stringify(part)).toString(
    'base64url',
  )
}

/** Signs according to RFC 7518 and RFC 8037. */
export function signatureOf(alg: string, key: KeyObject): Sign {
  if (alg === 'EdDSA') return (signed) => sign(null, signed, key)
  const hash = `sha${alg.slice(2)}`
  if (alg.startsWith('ES')) return (signed) => sign(hash, signed, { key, dsaEncoding: 'ieee-p1363' })
  if (alg.startsWith('RS')) return (signed) => sign(hash, signed, key)
  return (signed) => sign(hash, signed, { key, padding: RSA_PKCS1_PSS_PADDING, saltLength: Number(alg.slice(2)) / 8 })
}

const RSA_PKCS1_PSS_PADDING = 6
