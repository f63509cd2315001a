/** The middle value; of an even count the mean of the two in the middle. */
export const median = (values: readonly number[]): number => quantile(values, 0.5)

/** Linear between the two nearest values. Throws on an empty list: nothing measured is no measurement. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const place = (sorted.length - 1) * part
  const below = sorted[Math.floor(place)]
  const above = sorted[Math.ceil(place)]
  if (below === undefined || above === undefined) throw new Error('nothing was measured')
  return below + (above - below) * (place - Math.floor(place))
}

/** How many times the baseline's addition to `direct` the judged one adds, at the middle. */
export function addedRatio({ ours, baseline, direct }: Record<'ours' | 'baseline' | 'direct', number[]>): number {
  const added = median(baseline) - median(direct)
  if (added <= 0) throw new Error('the baseline was no slower than the provider itself: the run was too noisy')
  return (median(ours) - median(direct)) / added
}

/** The middle of the last `count` values as a ratio to that of the first `count`. */
export function growth(values: readonly number[], count: number): number {
  return median(values.slice(-count)) / median(values.slice(0, count))
}
