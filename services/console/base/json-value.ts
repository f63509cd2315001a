/** Values of a JSON document that may be incomplete: each function reads the parts that exist, and ignores the rest. */
export type JsonObject = Readonly<Record<string, unknown>>

export type Path = readonly (string | number)[]

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : {})

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The texts of a list. */
export const textsOf = (value: unknown): readonly string[] =>
  listOf(value).filter((each): each is string => typeof each === 'string')

export const pointerOf = (path: Path): string =>
  path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

/** The document with another value at a path; `undefined` removes the value. Unchanged parts stay the same objects. */
export function withValue(value: unknown, path: Path, next: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return next
  const changed = withValue(valueAt(value, [key]), rest, next)
  if (typeof key === 'number') {
    const list = listOf(value)
    return changed === undefined ? list.toSpliced(key, 1) : list.toSpliced(key, 1, changed)
  }
  // Built from entries, so that a name such as __proto__ is treated like any other name.
  const entries = Object.entries(objectOf(value))
  const at = entries.findIndex(([name]) => name === key)
  if (changed === undefined) return Object.fromEntries(entries.filter(([name]) => name !== key))
  return Object.fromEntries(entries.toSpliced(at < 0 ? entries.length : at, at < 0 ? 0 : 1, [key, changed]))
}

function valueAt(value: unknown, path: Path): unknown {
  let found = value
  for (const key of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return undefined
    found = (found as Record<string | number, unknown>)[key]
  }
  return found
}
