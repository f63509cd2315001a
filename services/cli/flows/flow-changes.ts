import { plainJson, plainLine } from '../text/plain.ts'
import type { Style } from '../text/style.ts'

/** A field that differs, by its path. `undefined`: the field is absent. */
export type Difference = { path: string; from: unknown; to: unknown }

const DEFAULTS: Readonly<Record<string, unknown>> = { tools: [], sub_agents: [], evolve: false }

/** Lists the differences between two definitions, field by field. A field that a definition leaves out has its default. */
export function differencesOf(from: object, to: object): Difference[] {
  return compare({ ...DEFAULTS, ...from }, { ...DEFAULTS, ...to }, '')
}

function compare(from: unknown, to: unknown, path: string): Difference[] {
  if (isObject(from) && isObject(to)) {
    const names = [...new Set([...Object.keys(from), ...Object.keys(to)])]
    return names.flatMap((name) => compare(from[name], to[name], path === '' ? name : `${path}.${name}`))
  }
  return JSON.stringify(sorted(from)) === JSON.stringify(sorted(to)) ? [] : [{ path, from, to }]
}

/** The order of an object's fields means nothing. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, each]) => [name, sorted(each)]),
  )
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

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
