import type { JsonObject } from '../../kernel/events.ts'
import { isJsonObject } from '../../kernel/json.ts'

/** The keywords that OpenAI always accepts in strict schemas, and those that are checked below. */
const KEYWORDS: ReadonlySet<string> = new Set(
  (
    '$schema $defs definitions $ref title description type properties required additionalProperties items minItems ' +
    'maxItems enum const anyOf minimum maximum exclusiveMinimum exclusiveMaximum multipleOf format'
  ).split(' '),
)

const FORMATS: ReadonlySet<unknown> = new Set('date-time time date duration email hostname ipv4 ipv6 uuid'.split(' '))

/** OpenAI's limit for the nesting of a strict schema. */
const MAX_DEPTH = 10

/**
 * Whether OpenAI accepts the schema with `strict: true`: an object at the top; every object has `additionalProperties:
 * false` and requires all its properties; only keywords of strict schemas.
 */
export const isStrictSchema = (schema: JsonObject): boolean =>
  schema['type'] === 'object' && isStrict(schema, MAX_DEPTH)

function isStrict(schema: unknown, depth: number): boolean {
  if (!isJsonObject(schema) || depth === 0) return false
  const { format, type, $ref, anyOf, $defs = {}, definitions = {} } = schema
  if (!Object.keys(schema).every((keyword) => KEYWORDS.has(keyword))) return false
  if (format !== undefined && !FORMATS.has(format)) return false
  if (type === undefined && $ref === undefined && anyOf === undefined) return false
  const types: unknown[] = Array.isArray(type) ? type : [type]
  const parts = [...valuesOf($defs), ...valuesOf(definitions), ...(Array.isArray(anyOf) ? anyOf : [])]
  if (types.includes('object')) parts.push(...valuesOf(schema['properties']))
  if (types.includes('array')) parts.push(schema['items'])
  return (!types.includes('object') || isClosed(schema)) && parts.every((part) => isStrict(part, depth - 1))
}

function isClosed({ properties, required, additionalProperties }: JsonObject): boolean {
  if (additionalProperties !== false || !isJsonObject(properties) || !Array.isArray(required)) return false
  return Object.keys(properties).every((name) => required.includes(name))
}

const valuesOf = (schemas: unknown): unknown[] => (isJsonObject(schemas) ? Object.values(schemas) : [])
