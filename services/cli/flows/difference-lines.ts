import { plainJson, plainLine } from '../text/plain.ts'
import type { Style } from '../text/style.ts'
import type { Difference } from './flow-changes.ts'

/** Each difference: the field, then the old lines and the new ones. */
export const differenceLines = (differences: readonly Difference[], style: Style): string[] =>
  differences.flatMap(({ path, from, to }) => [
    `    ${plainLine(path)}`,
    ...textOf(from).map((line) => style.red(`      - ${line}`)),
    ...textOf(to).map((line) => style.green(`      + ${line}`)),
  ])

function textOf(value: unknown): string[] {
  if (value === undefined) return []
  return typeof value === 'string' ? value.trimEnd().split('\n').map(plainLine) : [plainJson(value)]
}
