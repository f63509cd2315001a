import { isObject, type JsonObject, listOf, objectOf, textOf, textsOf } from '../../../base/json-value.ts'

type Common = { description: string; schema: JsonObject }

/** How the form asks for a value. `json`: as JSON text, if fields cannot represent the schema. */
export type Spec = Common &
  (
    | { kind: 'text' | 'number' | 'integer' | 'boolean' | 'json' }
    | { kind: 'choice'; choices: readonly unknown[] }
    | { kind: 'list'; item: Spec }
    | { kind: 'object'; fields: readonly Asked[] }
  )

export type Asked = { name: string; isRequired: boolean; spec: Spec }

/** Deeper values are written as JSON. */
const MOST_DEPTH = 4
/** Keywords that combine schemas: fields cannot represent them. */
const COMBINING = ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'if', 'patternProperties', 'prefixItems'] as const

export function specOf(given: unknown, depth = 0): Spec {
  const schema = objectOf(given)
  const common = { description: textOf(schema['description']), schema }
  if (depth > MOST_DEPTH || COMBINING.some((keyword) => keyword in schema)) return { ...common, kind: 'json' }
  if (Array.isArray(schema['enum'])) return { ...common, kind: 'choice', choices: schema['enum'] }
  switch (typeOf(schema)) {
    case 'string':
      return { ...common, kind: 'text' }
    case 'number':
      return { ...common, kind: 'number' }
    case 'integer':
      return { ...common, kind: 'integer' }
    case 'boolean':
      return { ...common, kind: 'boolean' }
    case 'array':
      return isObject(schema['items'])
        ? { ...common, kind: 'list', item: specOf(schema['items'], depth + 1) }
        : { ...common, kind: 'json' }
    case 'object':
      return isObject(schema['properties']) && Object.keys(schema['properties']).length > 0
        ? { ...common, kind: 'object', fields: fieldsOf(schema, depth) }
        : { ...common, kind: 'json' }
    default:
      return { ...common, kind: 'json' }
  }
}

/** The one type beside null. */
function typeOf({ type, properties }: JsonObject): string {
  const types = (Array.isArray(type) ? listOf(type) : [type]).filter((each) => each !== 'null')
  if (types.length === 1 && types[0] !== undefined) return textOf(types[0])
  return type === undefined && isObject(properties) ? 'object' : ''
}

function fieldsOf(schema: JsonObject, depth: number): Asked[] {
  const required = new Set(textsOf(schema['required']))
  return Object.entries(objectOf(schema['properties'])).map(([name, property]) => ({
    name,
    isRequired: required.has(name),
    spec: specOf(property, depth + 1),
  }))
}
