import type { Schema } from '../../../../shared/client/api.ts'

export type Row = Schema<'UsageRow'>

export type Sum = Pick<Row, 'runs' | 'failed' | 'input_tokens' | 'output_tokens' | 'cost_usd'> & {
  key: string
  /** The part of all cost, or of all tokens where nothing has a price. */
  share: number
}

export const FIELDS = ['runs', 'failed', 'input_tokens', 'output_tokens', 'cost_usd'] as const

/** The rows of each key added up, the largest first. */
export function sumsOf(rows: readonly Row[]): readonly Sum[] {
  const sums = [...Map.groupBy(rows, ({ key }) => key ?? '(none)')].map(([key, own]) => ({
    key,
    ...(Object.fromEntries(FIELDS.map((field) => [field, own.reduce((sum, row) => sum + row[field], 0)])) as Omit<
      Sum,
      'key' | 'share'
    >),
  }))
  const hasCost = sums.some(({ cost_usd }) => cost_usd > 0)
  const weight = (sum: Omit<Sum, 'share'>) => weightOf(sum, hasCost)
  const total = sums.reduce((sum, each) => sum + weight(each), 0)
  return sums
    .map((sum) => ({ ...sum, share: total === 0 ? 0 : weight(sum) / total }))
    .toSorted((one, other) => other.share - one.share)
}

/** The value of a row in a chart: dollars where anything has a price, else tokens. */
export const weightOf = (row: Pick<Row, 'cost_usd' | 'input_tokens' | 'output_tokens'>, hasCost: boolean): number =>
  hasCost ? row.cost_usd : row.input_tokens + row.output_tokens
