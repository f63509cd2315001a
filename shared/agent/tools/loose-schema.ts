import type { JsonObject } from '../../kernel/events.ts'
import { isJsonObject } from '../../kernel/json.ts'

/** Keywords whose values are not schemas. */
const VALUES: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'examples', 'required'])
/** Keywords whose value is an object with names as keys and schemas as values. */
export const NAMED: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
])
/** These keywords are removed: many servers ignore unknown fields, although their schemas refuse them. */
const CLOSING: ReadonlySet<string> = new Set(['additionalProperties', 'unevaluatedProperties'])
const MAX_DEPTH = 64

/** The part of an MCP server's schema that is checked before the server gets an input (D5.2). The server checks the rest. */
export const looseSchema = (schema: JsonObject): JsonObject => loosened(schema, 0) as JsonObject

function loosened(value: unknown, depth: number): unknown {
  if (depth > MAX_DEPTH) return value
  if (Array.isArray(value)) return value.map((each) => loosened(each, depth + 1))
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).filter(([name, each]) => !(CLOSING.has(name) && each === false))
  return Object.fromEntries(
    entries.map(([name, each]): [string, unknown] => {
      if (VALUES.has(name)) return [name, each]
      if (NAMED.has(name) && isJsonObject(each))
        return [name, Object.fromEntries(Object.entries(each).map(([key, inner]) => [key, loosened(inner, depth + 1)]))]
      return [name, loosened(each, depth + 1)]
    }),
  )
}
