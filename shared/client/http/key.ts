/** The same key does the same once. Made at random unless given; `null` sends none, and then the request is sent once. */
export type Keyed = { idempotencyKey?: string | null | undefined }

/** The key of a request, also of one that nobody named: it makes the request safe to repeat. */
export const keyOf = ({ idempotencyKey }: Keyed): string | undefined =>
  idempotencyKey === undefined
    ? `auto-${crypto.getRandomValues(new Uint32Array(4)).join('-')}`
    : (idempotencyKey ?? undefined)
