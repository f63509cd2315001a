import type { AnySchemaObject } from 'ajv/dist/2020.js'

export type Schemas = Readonly<Record<string, AnySchemaObject>>

/** Keywords whose schemas apply to the value itself, as `$ref` does. */
const IN_PLACE = ['allOf', 'anyOf', 'oneOf']

/**
 * Copies a schema so that objects may have only the fields that it describes, as far as it describes any and does not say what
 * becomes of others. References become plain names, which ajv uses here. A schema that is only ever part of another stays open
 * itself: the place that uses it is closed.
 */
export function close(schema: AnySchemaObject, schemas: Schemas): AnySchemaObject {
  const copy = closeInner(schema, schemas)
  return describesFields(schema, schemas) ? { ...copy, unevaluatedProperties: false } : copy
}

/** Closes the schemas of fields and items, but not the schema itself. */
export function closeInner(schema: AnySchemaObject, schemas: Schemas): AnySchemaObject {
  const entries = Object.entries(schema).map(([keyword, value]) => [keyword, closeKeyword(keyword, value, schemas)])
  return Object.fromEntries(entries) as AnySchemaObject
}

function closeKeyword(keyword: string, value: unknown, schemas: Schemas): unknown {
  if (keyword === '$ref') return nameOf(String(value))
  if (keyword === 'properties') {
    const fields = Object.entries(value as Schemas).map(([field, schema]) => [field, close(schema, schemas)])
    return Object.fromEntries(fields) as Schemas
  }
  if (IN_PLACE.includes(keyword)) return (value as AnySchemaObject[]).map((each) => closeInner(each, schemas))
  const isSchema = keyword === 'items' || keyword === 'additionalProperties'
  return isSchema && typeof value === 'object' ? close(value as AnySchemaObject, schemas) : value
}

const nameOf = (reference: string): string => reference.replace('#/components/schemas/', '')

function describesFields(schema: AnySchemaObject, schemas: Schemas): boolean {
  if (schema['properties']) return true
  const referred = typeof schema['$ref'] === 'string' ? schemas[nameOf(schema['$ref'])] : undefined
  const parts = IN_PLACE.flatMap((keyword) => (schema[keyword] ?? []) as AnySchemaObject[])
  return [...(referred ? [referred] : []), ...parts].some((each) => describesFields(each, schemas))
}
