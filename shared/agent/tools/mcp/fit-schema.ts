import type { JsonObject } from '../../../kernel/events.ts'
import { isJsonObject } from '../../../kernel/json.ts'
import { NAMED } from '../loose-schema.ts'

/** Keywords whose null is a value. */
const WITH_NULL: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'examples', 'example'])

const MAX_DEPTH = 64

/**
 * Corrects common faults in the schema of a tool's input: a field with a default is not required, a null keyword counts as absent, the input is an
 * object if no type is given, and a draft between the two known ones is read as the newer one.
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
  return withoutDefaulted(Object.fromEntries(entries))
}

/** Some servers require a field that has a default. It is made optional here, and the default is filled in for them (`withDefaults`). */
function withoutDefaulted(schema: Record<string, unknown>): Record<string, unknown> {
  const { required } = schema
  if (!Array.isArray(required) || !isJsonObject(schema['properties'])) return schema
  const left = required.filter((name) => defaultOf(schema, name) === undefined)
  return left.length === required.length ? schema : { ...schema, required: left }
}

/** The default that a schema gives the field with this name. */
function defaultOf({ properties }: Record<string, unknown>, name: unknown): unknown {
  if (typeof name !== 'string' || !isJsonObject(properties) || !Object.hasOwn(properties, name)) return undefined
  const property = properties[name]
  return isJsonObject(property) ? property['default'] : undefined
}

/** The input with the defaults of the fields that the server's own schema requires, at any depth. */
export function withDefaults(schema: unknown, input: JsonObject, depth = 0): JsonObject {
  if (!isJsonObject(schema) || depth > MAX_DEPTH) return input
  const { properties, required } = schema
  const missing = (Array.isArray(required) ? required : []).filter(
    (name) => !Object.hasOwn(input, String(name)) && defaultOf(schema, name) !== undefined,
  )
  const entries = Object.entries(input).map(([name, value]): [string, unknown] => {
    const inner = isJsonObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined
    return [name, isJsonObject(value) ? withDefaults(inner, value, depth + 1) : value]
  })
  return Object.fromEntries([...entries, ...missing.map((name) => [name, defaultOf(schema, name)])]) as JsonObject
}

const named = (schemas: Record<string, unknown>, depth: number) =>
  Object.fromEntries(
    Object.entries(schemas).map(([name, each]) => [name, each === null ? {} : withoutNulls(each, depth + 1)]),
  )
