/**
 * A value of an iteration, or several that came together. Each step of an async iteration costs five promises at each function that it passes, so all
 * values of one read of a socket are passed as one value: a run of 20 tokens then makes half the promises, and a third less to collect.
 */
export type Batched<T> = T | readonly T[]

export const eachOf = <T>(batch: Batched<T>): readonly T[] =>
  Array.isArray(batch) ? (batch as readonly T[]) : [batch as T]

/** Adds to a list that mostly has one item: `push` makes room for 17. */
export function added<T>(items: T[], item: T): T[] {
  if (items.length === 0) return [item]
  items.push(item)
  return items
}

/** Yields the values one by one. For iterations with few values. */
export async function* oneByOne<T>(batches: AsyncIterable<Batched<T>>): AsyncGenerator<T, void, undefined> {
  for await (const batch of batches) yield* eachOf(batch)
}

/** Separates the last value from a batch if `isEnd` says so, so that the caller can act before it. */
export function splitEnd<T>(
  batch: Batched<T>,
  isEnd: (each: T) => boolean,
): { others: Batched<T> | undefined; end: T | undefined } {
  const each = eachOf(batch)
  const last = each.at(-1)
  if (last === undefined || !isEnd(last)) return { others: batch, end: undefined }
  return { others: each.length > 1 ? each.slice(0, -1) : undefined, end: last }
}
