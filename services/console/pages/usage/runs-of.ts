import type { Measure, Sum } from './sums.ts'

/** The filter of `GET /runs` for each dimension. Each metadata key is a filter of its own. */
const FILTERS: Readonly<Record<string, string>> = {
  model: 'model',
  kind: 'kind',
  flow: 'flow',
  customer: 'customer_id',
  subject: 'subject',
}

type Part = {
  by: string
  values: Sum['values']
  measure: Measure
  /** The value of this part, as the measure shows it. */
  value: number | undefined
  /** In milliseconds; without `to` the time is open at the end. */
  span: { from: number; to?: number }
}

/** The filters that leave the runs of a part of the chart or the table. There is no filter for runs without a value, nor for the rest. */
export function runsOf({ by, values, measure, value, span: { from, to } }: Part): Record<string, string> | undefined {
  const names = by.split(',').map((name) => FILTERS[name] ?? name)
  const filters: [string, string][] = []
  for (const [i, each] of values.entries()) {
    if (typeof each !== 'string') return undefined
    filters.push([names[i] ?? '', each])
  }
  return {
    ...Object.fromEntries(filters),
    ...(measure === 'failed' && { status: 'failed' }),
    ...(measure === 'p95' && value !== undefined && { min_ms: String(value) }),
    since: new Date(from).toISOString(),
    ...(to !== undefined && { until: new Date(to).toISOString() }),
  }
}
