/**
 * A value of an iteration, or several that came together. Each step of an async iteration costs five promises at each function that it passes, so what one read of
 * a socket has brought passes as one value: a run of 20 tokens then makes half the promises, and a third less to collect.
 */
export type Batched<T> = T | readonly T[]

export const eachOf = <T>(batch: Batched<T>): readonly T[] =>
  Array.isArray(batch) ? (batch as readonly T[]) : [batch as T]

/** The values one by one, where few are expected. */
export async function* oneByOne<T>(batches: AsyncIterable<Batched<T>>): AsyncGenerator<T, void, undefined> {
  for await (const batch of batches) yield* eachOf(batch)
}

/** Parts a batch from its last value where `isEnd` says that this is one to act before. */
export function splitEnd<T>(
  batch: Batched<T>,
  isEnd: (each: T) => boolean,
): { others: Batched<T> | undefined; end: T | undefined } {
  const each = eachOf(batch)
  const last = each.at(-1)
  if (last === undefined || !isEnd(last)) return { others: batch, end: undefined }
  return { others: each.length > 1 ? each.slice(0, -1) : undefined, end: last }
}
