import type { JsonObject } from '../../kernel/events.ts'
import { isJsonObject } from '../../kernel/json.ts'

const COMBINERS = ['allOf', 'anyOf', 'oneOf', 'not', 'enum', 'const', 'if', 'then', 'else', '$ref'] as const

const known = new WeakMap<JsonObject, JsonObject>()

/**
 * The schema of a tool's input in a form that every provider accepts: an object at the top, with all properties of the alternatives
 * of `allOf`, `anyOf`, `oneOf` and `$ref`. It may accept more than the tool's own schema, which the engine checks.
 */
export function toolParameters(schema: JsonObject): JsonObject {
  const parameters = known.get(schema) ?? normalize(schema)
  known.set(schema, parameters)
  return parameters
}

function normalize(schema: JsonObject): JsonObject {
  const isCombined = COMBINERS.some((keyword) => keyword in schema)
  if (!isCombined && schema['type'] === 'object' && isJsonObject(schema['properties'])) return schema
  const { properties, required } = shapeOf(schema, { root: schema, depth: 0 })
  const rest = Object.entries(schema).filter(([name]) => !COMBINERS.some((keyword) => keyword === name))
  const { required: _, ...kept } = Object.fromEntries(rest)
  return { ...kept, type: 'object', properties, ...(required.length > 0 && { required }) }
}

type Shape = { properties: JsonObject; required: string[] }
type Place = { root: JsonObject; depth: number }

const MAX_DEPTH = 8
const EMPTY: Shape = { properties: {}, required: [] }

function shapeOf(schema: unknown, { root, depth }: Place): Shape {
  if (!isJsonObject(schema) || depth > MAX_DEPTH) return EMPTY
  const inner = (each: unknown) => shapeOf(each, { root, depth: depth + 1 })
  const parts = listOf(schema['allOf']).map(inner)
  if (typeof schema['$ref'] === 'string') parts.push(inner(resolveRef(schema['$ref'], root)))
  for (const keyword of ['anyOf', 'oneOf'] as const) {
    const alternatives = listOf(schema[keyword]).map(inner)
    if (alternatives.length > 0) parts.push(eitherOf(alternatives))
  }
  return bothOf([{ properties: propertiesOf(schema), required: textsOf(schema['required']) }, ...parts])
}

/** Combines schemas that all apply: requires each property that any of them requires. */
function bothOf(parts: readonly Shape[]): Shape {
  const properties = mergeProperties(parts)
  const required = new Set(parts.flatMap((part) => part.required))
  return { properties, required: [...required].filter((name) => name in properties) }
}

/** Combines alternatives: requires only the properties that all of them require. */
function eitherOf(parts: readonly Shape[]): Shape {
  const [first, ...others] = parts
  const required = first?.required.filter((name) => others.every((part) => part.required.includes(name))) ?? []
  return { properties: mergeProperties(parts), required }
}

/** A property with several schemas accepts any of them. */
function mergeProperties(parts: readonly Shape[]): JsonObject {
  const merged = new Map<string, unknown[]>()
  for (const [name, schema] of parts.flatMap(({ properties }) => Object.entries(properties))) {
    const schemas = merged.get(name) ?? []
    if (!schemas.some((each) => JSON.stringify(each) === JSON.stringify(schema))) schemas.push(schema)
    merged.set(name, schemas)
  }
  const entries = [...merged].map(([name, schemas]) => [name, schemas.length === 1 ? schemas[0] : { anyOf: schemas }])
  return Object.fromEntries(entries)
}

/** Resolves a reference within the schema, such as `#/$defs/input`. */
export function resolveRef(ref: string, root: JsonObject): unknown {
  if (!ref.startsWith('#/')) return undefined
  const names = ref.slice(2).split('/')
  return names.reduce<unknown>((value, name) => {
    const key = name.replaceAll('~1', '/').replaceAll('~0', '~')
    return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  }, root)
}

const propertiesOf = ({ properties }: JsonObject): JsonObject => (isJsonObject(properties) ? properties : {})

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

const textsOf = (value: unknown): string[] => listOf(value).filter((each) => typeof each === 'string')
