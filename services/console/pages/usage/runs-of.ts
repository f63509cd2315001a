import type { Measure, Sum } from './sums.ts'

/** The filters of `GET /runs`, by the dimension that each is of. A pair of metadata is a filter itself. */
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
  /** In milliseconds; without an end it goes on. */
  span: { from: number; to?: number }
}

/** The filters that leave the runs of a part of the chart or the table. None finds runs without a value, or those of the rest. */
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
