import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { JwksClient, JwksError } from 'jwks-rsa'
import { type Algorithm, fits, isAlgorithm, MAX_RSA_BITS } from './algorithms.ts'
import type { Jwk } from './published-keys.ts'

type VerificationKey = { kid: string | undefined; alg: string | undefined; key: KeyObject }

/** The issuer's signing keys of one moment. */
export type KeySet = {
  /** Equal for equal keys. */
  fingerprint: string
  size: number
  /**
   * The key of this id that fits the algorithm, the first if there are several. A token without an id gets a key only
   * where a single one fits: anything else would be guessing.
   */
  find(kid: string | undefined, alg: Algorithm): KeyObject | undefined
}

/**
 * Makes the function that reads a key set. jwks-rsa turns published keys into usable ones and leaves out what it cannot
 * read; its caches and its limiter stay off, since they fetch once per caller during an outage (reliability.md L16).
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
    if (cause instanceof JwksError) return [] // The issuer did answer, and has no key for us: so nothing verifies.
    throw cause
  }
}

/** What the issuer says a key is for, besides `use`, which jwks-rsa heeds. Over-long numbers go before anyone computes with them. */
function isForSignatures({ key_ops: ops, alg, n, e, kid }: Jwk): boolean {
  if (ops !== undefined && !(Array.isArray(ops) && ops.includes('verify'))) return false
  if (alg !== undefined && !isAlgorithm(alg)) return false
  if (kid !== undefined && typeof kid !== 'string') return false
  return isShort(n, MAX_RSA_BITS) && isShort(e, 64)
}

const isShort = (value: unknown, bits: number) =>
  value === undefined || (typeof value === 'string' && value.length <= Math.ceil(bits / 6))

/** What makes the key and no certificates or addresses; by `d` jwks-rsa sees a private key, and leaves it out. */
const publicPart = ({ kty, kid, alg, use, n, e, crv, x, y, d }: Jwk) => ({ kty, kid, alg, use, n, e, crv, x, y, d })

type SigningKeys = Awaited<ReturnType<JwksClient['getSigningKeys']>>

function toKeySet(signing: SigningKeys): KeySet {
  const spelled = signing.map((key) => ({ kid: key.kid, alg: key.alg, pem: key.getPublicKey() }))
  const keys: VerificationKey[] = spelled.map(({ kid, alg, pem }) => ({ kid, alg, key: createPublicKey(pem) }))
  return {
    fingerprint: hash('sha256', JSON.stringify(spelled)),
    size: keys.length,
    find(kid, alg) {
      const fitting = keys.filter((key) => (key.alg ?? alg) === alg && fits(alg, key.key))
      if (kid === undefined) return fitting.length === 1 ? fitting[0]?.key : undefined
      return fitting.find((key) => key.kid === kid)?.key
    },
  }
}
