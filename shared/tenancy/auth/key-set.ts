import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { JwksClient, JwksError } from 'jwks-rsa'
import { type Algorithm, isAlgorithm, isKeyFor, MAX_RSA_BITS } from './algorithms.ts'
import type { Jwk } from './published-keys.ts'

type VerificationKey = { kid: string | undefined; alg: string | undefined; key: KeyObject }

/** The signing keys that the issuer published at one moment. */
export type KeySet = {
  /** Equal for equal keys. */
  fingerprint: string
  size: number
  /**
   * Returns the first key with this id that can verify the algorithm. A token without a key id gets a key only when exactly one
   * can verify its algorithm.
   */
  find(kid: string | undefined, alg: Algorithm): KeyObject | undefined
}

/**
 * Creates the function that reads the key set. jwks-rsa converts the published keys and skips those that it cannot read. Its cache and
 * its limiter are off: during an outage they fetch once per caller, and `KeySource` limits fetches for all callers together.
 */
export function createReadKeySet(readKeys: () => Promise<Jwk[]>): () => Promise<KeySet> {
  const fetcher = async () => ({ keys: (await readKeys()).filter(isForSignatures).map(publicPart) })
  const client = new JwksClient({ fetcher, cache: false, rateLimit: false })
  return async () => toKeySet(await signingKeys(client))
}

async function signingKeys(client: JwksClient) {
  try {
    return await client.getSigningKeys()
  } catch (cause) {
    if (cause instanceof JwksError) return [] // The issuer answered without a usable key, so no token can be verified.
    throw cause
  }
}

/**
 * Selects keys that are meant for signatures (jwks-rsa checks `use` itself), and drops oversized numbers before any computation
 * with them.
 */
function isForSignatures({ key_ops: ops, alg, n, e, kid }: Jwk): boolean {
  if (ops !== undefined && !(Array.isArray(ops) && ops.includes('verify'))) return false
  if (alg !== undefined && !isAlgorithm(alg)) return false
  if (kid !== undefined && typeof kid !== 'string') return false
  return isShort(n, MAX_RSA_BITS) && isShort(e, 64)
}

const isShort = (value: unknown, bits: number) =>
  value === undefined || (typeof value === 'string' && value.length <= Math.ceil(bits / 6))

/** The fields of the key itself, without certificates and addresses. `d` is kept because jwks-rsa skips private keys by it. */
const publicPart = ({ kty, kid, alg, use, n, e, crv, x, y, d }: Jwk) => ({ kty, kid, alg, use, n, e, crv, x, y, d })

type SigningKeys = Awaited<ReturnType<JwksClient['getSigningKeys']>>

function toKeySet(signing: SigningKeys): KeySet {
  const spelled = signing.map((key) => ({ kid: key.kid, alg: key.alg, pem: key.getPublicKey() }))
  const keys: VerificationKey[] = spelled.map(({ kid, alg, pem }) => ({ kid, alg, key: createPublicKey(pem) }))
  return {
    fingerprint: hash('sha256', JSON.stringify(spelled)),
    size: keys.length,
    find(kid, alg) {
      const candidates = keys.filter((key) => (key.alg ?? alg) === alg && isKeyFor(alg, key.key))
      if (kid === undefined) return candidates.length === 1 ? candidates[0]?.key : undefined
      return candidates.find((key) => key.kid === kid)?.key
    },
  }
}
