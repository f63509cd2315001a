/** The middle value; of an even count the mean of the two in the middle. */
export const median = (values: readonly number[]): number => quantile(values, 0.5)

/** The quantile with linear interpolation between the two nearest values. Throws for an empty list. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const place = (sorted.length - 1) * part
  const below = sorted[Math.floor(place)]
  const above = sorted[Math.ceil(place)]
  if (below === undefined || above === undefined) throw new Error('nothing was measured')
  return below + (above - below) * (place - Math.floor(place))
}

/** The ratio of the medians' additions to `direct`: that of `ours` to that of the baseline. */
export function addedRatio({ ours, baseline, direct }: Record<'ours' | 'baseline' | 'direct', number[]>): number {
  const added = median(baseline) - median(direct)
  if (added <= 0) throw new Error('the baseline was not slower than the provider: the measurement was too noisy')
  return (median(ours) - median(direct)) / added
}

/** The ratio of the median of the last `count` values to that of the first `count`. */
export function growth(values: readonly number[], count: number): number {
  return median(values.slice(-count)) / median(values.slice(0, count))
}
