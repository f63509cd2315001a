/** Builds a path of the API. The texts in it, such as ids, are escaped, because they may come from outside. */
export const path = (parts: TemplateStringsArray, ...texts: string[]): string =>
  String.raw({ raw: parts }, ...texts.map(encodeURIComponent))

/** Requests with the same key are carried out once. The key is random unless given; `null` sends none, and then the request is not repeated. */
export type Keyed = { idempotencyKey?: string | null | undefined }

/** Adds the key to a request, a random one if none was given: it makes the request safe to repeat. */
export const withKey = <Request extends object>(request: Request & Keyed) => {
  const { idempotencyKey = `auto-${crypto.getRandomValues(new Uint32Array(4)).join('-')}` } = request
  return { ...request, idempotencyKey: idempotencyKey ?? undefined }
}
