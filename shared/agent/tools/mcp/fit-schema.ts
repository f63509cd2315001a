import { isJsonObject } from '../../../kernel/json.ts'

/** Keywords whose null is a value. */
const WITH_NULL: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'examples', 'example'])
/** Keywords whose keys are names of the server, and their values schemas. */
const NAMED: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
])

const MAX_DEPTH = 64

/**
 * The schema of a tool's input as it is meant: null is what some servers send for an absent keyword, the input is an object where no type
 * is named, and a draft between the two that are known is read as the newer one.
 */
export function fitSchema(schema: unknown): unknown {
  if (!isJsonObject(schema)) return schema
  const { $schema: draft, ...fit } = withoutNulls(schema, 0) as Record<string, unknown>
  const isKnown = typeof draft === 'string' && !draft.includes('2019-09')
  return { ...(isKnown && { $schema: draft }), ...(!('type' in fit) && { type: 'object' }), ...fit }
}

function withoutNulls(value: unknown, depth: number): unknown {
  if (depth > MAX_DEPTH) return value
  if (Array.isArray(value)) return value.map((each) => withoutNulls(each, depth + 1))
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).flatMap(([name, each]): [string, unknown][] => {
    if (WITH_NULL.has(name)) return [[name, each]]
    if (each === null) return []
    return [[name, NAMED.has(name) && isJsonObject(each) ? named(each, depth) : withoutNulls(each, depth + 1)]]
  })
  return Object.fromEntries(entries)
}

const named = (schemas: Record<string, unknown>, depth: number) =>
  Object.fromEntries(
    Object.entries(schemas).map(([name, each]) => [name, each === null ? {} : withoutNulls(each, depth + 1)]),
  )
