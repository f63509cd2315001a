import { parseJson } from '../../kernel/json.ts'
import { CROSSED, type Crossed, type UsageRows, type UsageSums } from './port.ts'
import { addRow, copyOf, type OwnRows, type OwnSums, REST, SUMMED } from './sums.ts'

/** The key for runs with these values of the dimensions in `CROSSED`; also used with the values of only two dimensions. */
export const crossedKey = (values: readonly string[]): string => JSON.stringify(values)

/** `undefined` for `REST`, which sums up the combinations above the limit. */
export function valuesOf(key: string): readonly string[] | undefined {
  const values = parseJson(key)
  return Array.isArray(values) ? values : undefined
}

type Pair = { by: Crossed; and: Crossed }

/**
 * Divides the rows of the dimension `by` by another one, with the combinations of the same hour or day. Usage that is in no combination, such
 * as older usage, is added to `REST` of the second dimension, so that the sums equal those of one dimension (D21e).
 */
export function divide(rows: UsageRows, combinations: UsageRows, { by, and }: Pair): UsageRows {
  const [first, second] = [CROSSED.indexOf(by), CROSSED.indexOf(and)]
  const left: OwnRows = new Map([...rows].map(([key, sums]) => [key, copyOf(sums)]))
  const divided: OwnRows = new Map()
  for (const [key, sums] of combinations) {
    const values = valuesOf(key)
    if (!values) continue
    const value = values[first] ?? REST
    const known = left.has(value) ? value : REST
    addRow(divided, [crossedKey([known, values[second] ?? REST]), sums], Number.POSITIVE_INFINITY)
    takeFrom(left.get(known), sums)
  }
  for (const [key, sums] of left)
    if (sums.runs > 0) addRow(divided, [crossedKey([key, REST]), sums], Number.POSITIVE_INFINITY)
  return divided
}

function takeFrom(left: OwnSums | undefined, taken: UsageSums): void {
  if (!left) return
  for (const field of SUMMED) left[field] = Math.max(0, left[field] - taken[field])
  for (const [index, count] of taken.durations) {
    const rest = (left.durations.get(index) ?? 0) - count
    if (rest > 0) left.durations.set(index, rest)
    else left.durations.delete(index)
  }
}
