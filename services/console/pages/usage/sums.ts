import type { Schema } from '../../../../shared/client/api.ts'
import { duration, money, percent, short } from '../../base/format.ts'

export type Row = Schema<'UsageRow'>

export const FIELDS = [
  ...(['runs', 'failed', 'invalid', 'input_tokens', 'cache_read_tokens'] as const),
  ...(['cache_write_tokens', 'output_tokens', 'cost_usd'] as const),
] as const

/** `durations`: how many runs are in each class, by the upper limit of the class in milliseconds. */
export type Amounts = Record<(typeof FIELDS)[number], number> & { durations: ReadonlyMap<number, number> }

/** A value of the dimension `by`; `null`: runs without a value, `undefined`: the rest, which is not divided. */
type Value = string | null | undefined

export type Sum = Amounts & {
  /** No two values have the same one. */
  key: string
  name: string
  values: readonly Value[]
  /** The part of all, by a measure that can be divided. */
  share: number | undefined
}

type MeasureOf = {
  label: string
  show(value: number): string
  /** `undefined`: unknown, for example because there were no runs. */
  of(amounts: Amounts): number | undefined
  /** Whether the total is the sum of the parts. */
  isSum: boolean
  /** The limit of a day, as the API names it. */
  budget?: 'usd_per_day' | 'tokens_per_day'
}

/** What the page shows of the runs. */
export const MEASURES = {
  cost: { label: 'Cost', show: money, of: ({ cost_usd }) => cost_usd, isSum: true, budget: 'usd_per_day' },
  tokens: {
    label: 'Tokens',
    show: short,
    of: ({ input_tokens, output_tokens }) => input_tokens + output_tokens,
    isSum: true,
    budget: 'tokens_per_day',
  },
  runs: { label: 'Runs', show: short, of: ({ runs }) => runs, isSum: true },
  failed: { label: 'Failures', show: short, of: ({ failed }) => failed, isSum: true },
  p95: { label: 'p95 duration', show: duration, of: ({ durations }) => p95Of(durations), isSum: false },
  cache: {
    label: 'Cache share',
    show: percent,
    of: ({ input_tokens: all, cache_read_tokens: read }) => (all > 0 ? read / all : undefined),
    isSum: false,
  },
} as const satisfies Readonly<Record<string, MeasureOf>>

export type Measure = keyof typeof MEASURES

const isMeasure = (name: string): name is Measure => Object.hasOwn(MEASURES, name)

/** The general form of a measure; only some measures have parts. */
export const measure = (name: Measure): MeasureOf => MEASURES[name]

export const shown = (name: Measure, value: number | undefined): string =>
  value === undefined ? '–' : MEASURES[name].show(value)

/** The measure that was asked for; by default dollars if anything has a price, otherwise tokens. */
export const measureOf = (wanted: string | null, rows: readonly Row[]): Measure =>
  wanted !== null && isMeasure(wanted) ? wanted : rows.some(({ cost_usd }) => cost_usd > 0) ? 'cost' : 'tokens'

export function addUp(rows: readonly Row[]): Amounts {
  const durations = new Map<number, number>()
  // A gateway of an older version sends no durations.
  for (const row of rows)
    for (const { up_to_ms: edge, runs } of row.durations ?? []) durations.set(edge, (durations.get(edge) ?? 0) + runs)
  const sum = (field: (typeof FIELDS)[number]) => rows.reduce((all, row) => all + row[field], 0)
  const sums = Object.fromEntries(FIELDS.map((field) => [field, sum(field)])) as Omit<Amounts, 'durations'>
  return { ...sums, durations }
}

/** The upper limit of each class of durations is this factor times that of the class before (D21b). */
const EDGES_APART = 2 ** (1 / 4)

/** The duration that 95 % of the runs stay below, with an error of at most 19 %. `undefined` when there is no run. */
export function p95Of(durations: Amounts['durations']): number | undefined {
  const classes = [...durations].toSorted(([one], [other]) => one - other)
  const wanted = 0.95 * classes.reduce((all, [, runs]) => all + runs, 0)
  let before = 0
  for (const [edge, runs] of classes) {
    if (before + runs >= wanted) return Math.round(edge * EDGES_APART ** ((wanted - before) / runs - 1))
    before += runs
  }
  return undefined
}

/** The values of `by` in a row. A gateway of an older version does not report which rows are the rest. */
export const valuesOf = ({ key, keys = [key], rest = [] }: Row): Sum['values'] =>
  keys.map((value, i) => (rest[i] ? undefined : value))

export const keyOf = (row: Row): string =>
  JSON.stringify(valuesOf(row).map((value) => (value === undefined ? 0 : value)))

export const labelOf = (value: Value): string => (value === undefined ? '(other)' : (value ?? '(none)'))

/** The rows of each key added up, the largest first. `total`: the sum over all runs, including those without a row. */
export function sumsOf(rows: readonly Row[], by: Measure, total = addUp(rows)): readonly Sum[] {
  const { of, isSum } = MEASURES[by]
  const all = of(total) ?? 0
  return [...Map.groupBy(rows, keyOf)]
    .map(([key, own]) => {
      const amounts = addUp(own)
      const share = all === 0 ? 0 : (of(amounts) ?? 0) / all
      const values = own[0] ? valuesOf(own[0]) : []
      const name = values.map(labelOf).join(' · ')
      return { key, name, values, ...amounts, share: isSum ? share : undefined }
    })
    .toSorted((one, other) => (of(other) ?? 0) - (of(one) ?? 0))
}
