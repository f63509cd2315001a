import type { Schema } from '../../../../shared/client/api.ts'
import { money, short } from '../../base/format.ts'

export type Row = Schema<'UsageRow'>

export type Sum = Pick<Row, (typeof FIELDS)[number]> & {
  key: string
  /** The part of all, by the measure that is shown. */
  share: number
}

export const FIELDS = [
  ...(['runs', 'failed', 'input_tokens', 'cache_read_tokens'] as const),
  ...(['cache_write_tokens', 'output_tokens', 'cost_usd'] as const),
] as const

type Amounts = Pick<Row, (typeof FIELDS)[number]>

/** The measures of which the page shows bars and shares. */
export const MEASURES = {
  cost: { label: 'Cost', show: money, of: ({ cost_usd }: Amounts) => cost_usd },
  tokens: {
    label: 'Tokens',
    show: short,
    of: ({ input_tokens, output_tokens }: Amounts) => input_tokens + output_tokens,
  },
  runs: { label: 'Runs', show: short, of: ({ runs }: Amounts) => runs },
  failed: { label: 'Failed runs', show: short, of: ({ failed }: Amounts) => failed },
} as const

export type Measure = keyof typeof MEASURES

/** The measure that was asked for; without one dollars where anything has a price, else tokens. */
export const measureOf = (wanted: string | null, rows: readonly Row[]): Measure =>
  wanted !== null && Object.hasOwn(MEASURES, wanted)
    ? (wanted as Measure)
    : rows.some(({ cost_usd }) => cost_usd > 0)
      ? 'cost'
      : 'tokens'

/** The rows of each key added up, the largest first. */
export function sumsOf(rows: readonly Row[], measure: Measure): readonly Sum[] {
  const sums = [...Map.groupBy(rows, ({ key }) => key ?? '(none)')].map(([key, own]) => ({
    key,
    ...(Object.fromEntries(FIELDS.map((field) => [field, own.reduce((sum, row) => sum + row[field], 0)])) as Omit<
      Sum,
      'key' | 'share'
    >),
  }))
  const { of } = MEASURES[measure]
  const total = sums.reduce((sum, each) => sum + of(each), 0)
  return sums
    .map((sum) => ({ ...sum, share: total === 0 ? 0 : of(sum) / total }))
    .toSorted((one, other) => other.share - one.share)
}
