import type { JsonObject } from '../../kernel/events.ts'
import { isJsonObject, parseJson } from '../../kernel/json.ts'
import { resolveRef } from '../providers/tool-schema.ts'

/** `hasTexts`: there is a text where the schema requires an array or an object, whether or not it is such JSON. */
type Reread = { value: unknown; hasTexts: boolean }

/** How many levels of a value, and of a schema's references and alternatives, are visited. */
const MAX_DEPTH = 16

/** Parses the texts of an input that are JSON, where its schema allows an array or an object but no text. */
export function withParsedTexts(input: JsonObject, schema: JsonObject): Reread {
  let hasTexts = false
  const parsed = (text: string, schemas: readonly JsonObject[], depth: number): unknown => {
    const types = typesOf(schemas)
    if (!types || types.has('string') || !(types.has('array') || types.has('object'))) return text
    hasTexts = true
    const value = parseJson(text)
    const isWanted = (types.has('array') && Array.isArray(value)) || (types.has('object') && isJsonObject(value))
    return isWanted ? read(value, schemas, depth + 1) : text
  }
  const read = (value: unknown, schemas: readonly JsonObject[], depth: number): unknown => {
    if (schemas.length === 0 || depth > MAX_DEPTH) return value
    if (typeof value === 'string') return parsed(value, schemas, depth)
    if (Array.isArray(value)) {
      const items = schemas.flatMap((each) => shapesOf(each['items'], schema))
      return value.map((each) => read(each, items, depth + 1))
    }
    if (!isJsonObject(value)) return value
    const entries = Object.entries(value).map(([name, each]) => {
      const own = schemas.flatMap((at) => shapesOf(propertyOf(at, name), schema))
      return [name, read(each, own, depth + 1)]
    })
    return Object.fromEntries(entries)
  }
  const value = read(input, shapesOf(schema, schema), 0)
  return { value: hasTexts ? value : input, hasTexts }
}

function propertyOf({ properties, additionalProperties }: JsonObject, name: string): unknown {
  return isJsonObject(properties) && Object.hasOwn(properties, name) ? properties[name] : additionalProperties
}

/** The schema itself, or the schemas that it names by reference or as alternatives. */
function shapesOf(schema: unknown, root: JsonObject, depth = 0): JsonObject[] {
  if (!isJsonObject(schema) || depth > MAX_DEPTH) return []
  const { $ref: ref } = schema
  const inner =
    typeof ref === 'string'
      ? [resolveRef(ref, root)]
      : ['anyOf', 'oneOf', 'allOf'].flatMap((name) => schema[name] ?? [])
  return inner.length === 0 ? [schema] : inner.flatMap((each) => shapesOf(each, root, depth + 1))
}

/** All types that the schemas allow; `undefined` when one of them allows any type. */
function typesOf(schemas: readonly JsonObject[]): Set<unknown> | undefined {
  const types = schemas.map(({ type }) => type)
  return types.every((type) => type !== undefined) ? new Set(types.flat()) : undefined
}
