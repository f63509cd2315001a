/** The same key does the same once. Made at random unless given; `null` sends none, and then the request is sent once. */
export type Keyed = { idempotencyKey?: string | null | undefined }

/** The key of a request, also of one that nobody named: it makes the request safe to repeat. */
export function keyOf(given: string | null | undefined): string | undefined {
  if (given !== undefined) return given ?? undefined
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return `auto-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}
