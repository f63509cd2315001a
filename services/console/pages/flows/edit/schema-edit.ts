import { type JsonObject, objectOf, textsOf, withValue } from '../../../base/json-value.ts'

/** A property of a schema, as a row of the form. */
export type Property = { name: string; type: string; isRequired: boolean; description: string; choices: string }

/** The types that a row can choose. Their details are written in the JSON. */
export const TYPES = ['string', 'number', 'integer', 'boolean', 'array', 'object'] as const

export function propertiesOf(schema: JsonObject): readonly Property[] {
  const required = new Set(textsOf(schema['required']))
  return Object.entries(objectOf(schema['properties'])).map(([name, property]) => {
    const { type, description, enum: choices } = objectOf(property)
    return {
      name,
      type: typeof type === 'string' ? type : '',
      isRequired: required.has(name),
      description: typeof description === 'string' ? description : '',
      choices: textsOf(choices).join(', '),
    }
  })
}

/** The schema with one more property, with an unused name. */
export function withNew(schema: JsonObject): JsonObject {
  const properties = objectOf(schema['properties'])
  let count = Object.keys(properties).length + 1
  while (Object.hasOwn(properties, `field_${count}`)) count++
  const typed = schema['type'] === undefined ? { ...schema, type: 'object' } : schema
  return withValue(typed, ['properties', `field_${count}`], { type: 'string' }) as JsonObject
}

export function without(schema: JsonObject, name: string): JsonObject {
  const rest = withValue(schema, ['properties', name], undefined) as JsonObject
  return requiring(rest, name, false)
}

/** The schema with another name of a property, at the same place. A name that is taken or empty changes nothing. */
export function renamed(schema: JsonObject, from: string, to: string): JsonObject {
  const properties = objectOf(schema['properties'])
  if (to === '' || Object.hasOwn(properties, to)) return schema
  const entries = Object.entries(properties).map(([name, value]) => [name === from ? to : name, value] as const)
  const required = textsOf(schema['required']).map((name) => (name === from ? to : name))
  return { ...schema, properties: Object.fromEntries(entries), ...(required.length > 0 && { required }) }
}

export function requiring(schema: JsonObject, name: string, isRequired: boolean): JsonObject {
  const others = textsOf(schema['required']).filter((each) => each !== name)
  const required = isRequired ? [...others, name] : others
  return withValue(schema, ['required'], required.length > 0 ? required : undefined) as JsonObject
}

/** The schema with another type or description of a property; an empty one is removed. */
export function withKeyword(schema: JsonObject, name: string, change: { type: string } | { description: string }) {
  const [[key, text] = ['', '']] = Object.entries(change)
  return withValue(schema, ['properties', name, key], text === '' ? undefined : text) as JsonObject
}
