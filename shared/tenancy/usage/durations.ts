/** How many durations fall into each class, by the number of the class. Classes without durations are left out. */
export type Durations = ReadonlyMap<number, number>

/** Four classes to a doubling: the edges of a class are 19 % apart. */
const CLASSES_PER_DOUBLING = 4
/** The class of the longest duration, 2^32 ms or 49 days. */
const LAST_CLASS = 32 * CLASSES_PER_DOUBLING

/** The number of the class of a duration: it is longer than the upper edge of the class before. */
export function durationClass(ms: number): number {
  if (!(ms > 1)) return 0
  return Math.min(Math.ceil(Math.log2(ms) * CLASSES_PER_DOUBLING), LAST_CLASS)
}

/** The duration below which the share `q` of all durations lies, in whole milliseconds; at most 19 % too high. `null` when there is none. */
export function quantile(durations: Durations, q: number): number | null {
  const total = sum(durations.values())
  let before = 0
  for (const [index, count] of [...durations].sort(([a], [b]) => a - b)) {
    const within = (q * total - before) / count
    if (within <= 1) return Math.round(upperEdge(index - 1 + Math.max(within, 0)))
    before += count
  }
  return null
}

/** The classes by their upper edges, in whole milliseconds, so that several rows can be added up. */
export const classesOf = (durations: Durations): { up_to_ms: number; runs: number }[] =>
  [...durations].sort(([a], [b]) => a - b).map(([index, runs]) => ({ up_to_ms: Math.round(upperEdge(index)), runs }))

const upperEdge = (index: number) => 2 ** (index / CLASSES_PER_DOUBLING)

const sum = (numbers: Iterable<number>) => [...numbers].reduce((all, each) => all + each, 0)
