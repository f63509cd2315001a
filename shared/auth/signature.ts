import { type KeyObject, verify } from 'node:crypto'
import jsonwebtoken from 'jsonwebtoken'
import type { Token } from './token.ts'

/**
 * Did this key sign the token? The key has to fit the token's algorithm; claims are none of this function's business.
 * jsonwebtoken knows no EdDSA (RFC 8037), so Node verifies that.
 */
export function isSignedBy(token: Token, key: KeyObject): boolean {
  if (token.alg === 'EdDSA') return verify(null, Buffer.from(token.signed), key, token.signature)
  try {
    jsonwebtoken.verify(token.compact, key, { algorithms: [token.alg], ignoreExpiration: true, ignoreNotBefore: true })
    return true
  } catch {
    return false // jsonwebtoken says no by throwing, in as many ways as there are to be wrong.
  }
}
