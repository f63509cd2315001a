import type { JsonObject } from '../../kernel/events.ts'
import { isJsonObject } from '../../kernel/json.ts'

/** Finds out which paths the values of a schema can have. It is lenient: it refuses only what the schema says does not exist. */
export type SchemaPaths = {
  /** Whether every value is an object. */
  describesObject: boolean
  has(path: readonly string[]): boolean
}

/** Subschemas that apply to one value; `any` when one of them allows everything. */
type Applied = JsonObject[] | 'any'

/** Keywords whose subschemas apply to the same value. */
const LISTS = ['allOf', 'anyOf', 'oneOf']
const BRANCHES = ['then', 'else']
const OPEN_ENDED = ['additionalProperties', 'unevaluatedProperties']
const ITEM_LISTS = ['prefixItems', 'items']
const OTHER_ITEMS = ['items', 'additionalItems', 'unevaluatedItems']
const INDEX = /^(0|[1-9]\d*)$/
/** How many subschemas are visited for one schema. No reasonable schema needs as many; beyond that every path is accepted. */
const MAX_VISITS = 100_000

/**
 * Follows local references, `allOf`, `anyOf` and `oneOf`. A path exists when one of the subschemas declares it, or when none of them
 * declares any property and they do not exclude objects.
 */
export function createSchemaPaths(root: JsonObject): SchemaPaths {
  let visits = 0
  const apply = (schemas: readonly unknown[]): Applied => {
    const applied = new Set<JsonObject>()
    const waiting = [...schemas]
    for (let schema = waiting.pop(); schema !== undefined; schema = waiting.pop()) {
      if (schema === true || ++visits > MAX_VISITS) return 'any'
      if (!isJsonObject(schema) || applied.has(schema)) continue
      applied.add(schema)
      waiting.push(...sameValueSchemas(schema, root))
    }
    return [...applied]
  }
  return {
    describesObject: isObjectOnly(apply([root])),
    has(path) {
      let applied = apply([root])
      for (const key of path) {
        if (applied === 'any') return true
        const below = schemasBelow(applied, key)
        if (below.length === 0) return isOpen(applied, key)
        applied = apply(below)
      }
      return applied.length > 0
    },
  }
}

function sameValueSchemas(schema: JsonObject, root: JsonObject): unknown[] {
  const { $ref: reference, dependentSchemas: dependent } = schema
  return [
    ...LISTS.flatMap((keyword) => listOf(schema[keyword])),
    ...BRANCHES.map((keyword) => schema[keyword]).filter(isJsonObject),
    ...(isJsonObject(dependent) ? Object.values(dependent) : []),
    ...(typeof reference === 'string' ? [resolve(root, reference)] : []),
    ...('$dynamicRef' in schema ? [true] : []),
  ]
}

/** The subschema at a JSON pointer; `true` for a reference of another kind. */
function resolve(root: JsonObject, reference: string): unknown {
  if (reference !== '#' && !reference.startsWith('#/')) return true
  let value: unknown = root
  for (const part of reference.split('/').slice(1)) {
    const key = decode(part).replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return true
    value = (value as JsonObject)[key]
  }
  return value
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** The subschemas of the property or item `key`, as far as they are declared. */
const schemasBelow = (applied: readonly JsonObject[], key: string): unknown[] =>
  applied.flatMap((schema) => [...propertySchemas(schema, key), ...(INDEX.test(key) ? itemSchemas(schema, key) : [])])

function propertySchemas(schema: JsonObject, key: string): unknown[] {
  const { properties, patternProperties } = schema
  if (isJsonObject(properties) && Object.hasOwn(properties, key)) return [properties[key]]
  if (isJsonObject(patternProperties) && Object.keys(patternProperties).length > 0) return [true]
  return OPEN_ENDED.map((keyword) => schema[keyword]).filter(isUsable)
}

function itemSchemas(schema: JsonObject, key: string): unknown[] {
  for (const keyword of ITEM_LISTS) {
    const item = listOf(schema[keyword])[Number(key)]
    if (item !== undefined) return [item]
  }
  return OTHER_ITEMS.map((keyword) => schema[keyword]).filter(isUsable)
}

const isUsable = (schema: unknown): boolean => schema === true || isJsonObject(schema)

function isOpen(applied: readonly JsonObject[], key: string): boolean {
  if (applied.some((schema) => isDeclaring(schema, key))) return false
  const types = applied.filter(({ type }) => type !== undefined).map(typesOf)
  const fits = (list: readonly unknown[]) => list.includes('object') || (INDEX.test(key) && list.includes('array'))
  return applied.length > 0 && (types.length === 0 || types.some(fits))
}

function isDeclaring(schema: JsonObject, key: string): boolean {
  const { properties } = schema
  if (isJsonObject(properties) && Object.keys(properties).length > 0) return true
  const closing = [...OPEN_ENDED, ...(INDEX.test(key) ? OTHER_ITEMS : [])]
  return closing.some((keyword) => schema[keyword] === false)
}

function isObjectOnly(applied: Applied): boolean {
  if (applied === 'any') return false
  const types = applied.filter(({ type }) => type !== undefined).map(typesOf)
  if (types.length === 0) return applied.some(({ properties }) => isJsonObject(properties))
  return types.some((list) => list.length === 1 && list[0] === 'object')
}

const typesOf = ({ type }: JsonObject): readonly unknown[] => (Array.isArray(type) ? type : [type])

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
