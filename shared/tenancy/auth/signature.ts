import { type KeyObject, verify } from 'node:crypto'
import jsonwebtoken from 'jsonwebtoken'
import type { Token } from './token.ts'

/**
 * Tells whether this key signed the token. The caller has checked that the key can verify the token's algorithm. Claims are not
 * checked. jsonwebtoken does not support EdDSA (RFC 8037), so Node's crypto verifies that.
 */
export function isSignedBy(token: Token, key: KeyObject): boolean {
  if (token.alg === 'EdDSA') return verify(null, Buffer.from(token.signed), key, token.signature)
  try {
    jsonwebtoken.verify(token.compact, key, { algorithms: [token.alg], ignoreExpiration: true, ignoreNotBefore: true })
    return true
  } catch {
    return false // jsonwebtoken throws for every kind of invalid token.
  }
}
