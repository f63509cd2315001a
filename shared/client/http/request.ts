/** A path of the API. The texts in it, such as ids, may come from outside. */
export const path = (parts: TemplateStringsArray, ...texts: string[]): string =>
  String.raw({ raw: parts }, ...texts.map(encodeURIComponent))

/** The same key does the same once. Made at random unless given; `null` sends none, and then the request is sent once. */
export type Keyed = { idempotencyKey?: string | null | undefined }

/** A request with its key, also one that nobody named: it makes the request safe to repeat. */
export const withKey = <Request extends object>(request: Request & Keyed) => {
  const { idempotencyKey = `auto-${crypto.getRandomValues(new Uint32Array(4)).join('-')}` } = request
  return { ...request, idempotencyKey: idempotencyKey ?? undefined }
}
