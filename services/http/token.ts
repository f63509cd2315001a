import { createHash, timingSafeEqual } from 'node:crypto'

/** The token of an `Authorization: Bearer` header, or `undefined`. */
export const bearerOf = (authorization = ''): string | undefined => /^bearer +(\S+) *$/i.exec(authorization)?.[1]

/** Creates a comparison with a secret that takes the same time for every input. */
export function createTokenCheck(secret: string): (given: string | undefined) => boolean {
  const expected = digest(secret)
  return (given) => given !== undefined && timingSafeEqual(digest(given), expected)
}

/** `timingSafeEqual` compares texts of equal length only, so it gets digests. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
