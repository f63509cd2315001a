/** A field that differs, by its path. `undefined` stands for none. */
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
