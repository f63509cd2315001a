/** The key of a request that nobody named: it makes the request safe to repeat. `null` stands for none. */
export function keyOf(given: string | null | undefined): string | undefined {
  if (given !== undefined) return given ?? undefined
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return `auto-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}
