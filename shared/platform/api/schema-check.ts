import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import type { JsonObject } from '../../kernel/events.ts'
import { escapePointer } from '../../kernel/json.ts'
import { quoted } from '../../kernel/text.ts'
import type { Schema, Schemas } from './document.ts'

/** The reason why a body is refused, as a message for the caller. `param` is the JSON pointer of the wrong field (D2.3). */
export type Refusal = { message: string; param?: string }

/** The known fields of an object, each with the shape of its value. Other fields are ignored (D2.4). */
export type Fields = ReadonlyMap<string, Shape | undefined>
/** The shape of an object, or of the items of a list. */
export type Shape = Fields | { items: Shape }

export type SchemaCheck = {
  /** `undefined` for an object of which all fields are read. */
  shape: Fields | undefined
  /** Checks a body that was reduced to `shape`. */
  refusalOf(body: JsonObject): Refusal | undefined
}

/**
 * Compiles one schema. Fields with `x-ignored` are not read; fields with `x-refused` must be absent, and its value is the
 * message. `x-max-values` is checked before a body is parsed (`decode.ts`).
 */
export function compileCheck(schemas: Schemas, name: string): SchemaCheck {
  const schema = schemas[name]
  if (!schema) throw new Error(`openapi.yaml has no schema ${name}`)
  const validate = compile(schemas, name)
  const shape = shapeOf(schemas, schema)
  return {
    shape: schema.additionalProperties === true ? undefined : shape instanceof Map ? shape : new Map(),
    refusalOf: (body) => (validate(body) ? findLoneSurrogate(body, '') : refusal(validate.errors?.[0])),
  }
}

/** `undefined` for a schema of something other than an object, and for objects whose schema itself handles other fields. */
function shapeOf(schemas: Schemas, { $ref, properties, additionalProperties, items }: Schema): Shape | undefined {
  const referred = $ref === undefined ? undefined : schemas[$ref.slice('#/components/schemas/'.length)]
  if (referred) return shapeOf(schemas, referred)
  const inItems = items && shapeOf(schemas, items)
  if (inItems) return { items: inItems }
  if (!properties || additionalProperties !== undefined) return undefined
  const read = Object.entries(properties).filter(([, property]) => property['x-ignored'] !== true)
  return new Map(read.map(([field, property]) => [field, shapeOf(schemas, property)]))
}

function compile(schemas: Schemas, name: string): ValidateFunction {
  // A test checks the schemas themselves, so compiling their meta-schema, which takes 30 ms, is left out.
  const ajv = new Ajv2020({
    strict: false,
    strictNumbers: true,
    validateFormats: false, // Our own code checks values with a format, and describes their problems.
    validateSchema: false,
    meta: false,
    verbose: true,
  })
  ajv.removeKeyword('minLength').removeKeyword('maxLength')
  ajv.addKeyword({ keyword: 'minLength', ...LENGTH, compile: atLeast })
  ajv.addKeyword({ keyword: 'maxLength', ...LENGTH, compile: atMost })
  return ajv.compile({ components: { schemas }, $ref: `#/components/schemas/${name}` })
}

/** Checked before `pattern`, so that a pattern never runs over a text that is too long. */
const LENGTH = { type: 'string', schemaType: 'number', before: 'pattern' } as const

/** Lengths are numbers of code points (D2.6). They are counted only if the number of UTF-16 units does not already decide. */
const atLeast = (min: number) => (text: string) =>
  text.length >= 2 * min || (text.length >= min && countCodePoints(text) >= min)
const atMost = (max: number) => (text: string) =>
  text.length <= max || (text.length <= 2 * max && countCodePoints(text) <= max)

function countCodePoints(text: string): number {
  let pairs = 0
  for (let at = 0; at < text.length; at++) if ((text.codePointAt(at) ?? 0) > 0xffff) pairs++
  return text.length - pairs
}

function refusal(error: ErrorObject | undefined): Refusal {
  if (!error) return { message: 'the body does not fit its schema' }
  const { keyword, params, instancePath, propertyName } = error
  const schema = error.parentSchema as Schema
  if (keyword === 'required' || keyword === 'dependentRequired') {
    const param = `${instancePath}/${params['missingProperty']}`
    const reason = keyword === 'required' ? '' : ` beside ${params['property']}`
    return { message: `${nameOf(param)} is required${reason}`, param }
  }
  if (keyword === 'additionalProperties') {
    const known = Object.keys(schema.properties ?? {}).join(', ')
    return {
      message: `${nameOf(instancePath)} may have only the fields ${known}`,
      param: pointerTo(error, params['additionalProperty']),
    }
  }
  const param = propertyName === undefined ? instancePath : pointerTo(error, propertyName)
  return { message: schema['x-refused'] ?? `${nameOf(param)} must be ${wanted(schema)}`, param }
}

/** The JSON pointer of a field in the object that has an error. */
const pointerTo = ({ instancePath }: ErrorObject, field: unknown): string =>
  `${instancePath}/${escapePointer(quoted(String(field)))}`

/** Turns the pointer `/stop_sequences/3` into the readable `stop_sequences[3]`. */
const nameOf = (pointer: string): string =>
  pointer
    .slice(1)
    .replaceAll(/\/(\d+)/g, '[$1]')
    .replaceAll('/', '.')

function wanted(schema: Schema): string {
  if (schema['x-wanted'] !== undefined) return schema['x-wanted']
  if (schema.enum) return `one of ${schema.enum.join(', ')}`
  if (schema.type === 'boolean') return 'true or false'
  if (schema.type === 'integer') return `a whole number from ${schema.minimum} to ${schema.maximum}`
  if (schema.type === 'number') return `a number from ${schema.minimum} to ${schema.maximum}`
  if (schema.type === 'object') return 'a JSON object'
  if (schema.type === 'string') return `a string${sizeOf(schema.minLength ?? 0, schema.maxLength, 'characters')}`
  if (schema.type === 'array') return `a list${sizeOf(schema.minItems, schema.maxItems, 'entries')}`
  return `of type ${[schema.type].flat().join(' or ')}`
}

function sizeOf(min: number | undefined, max: number | undefined, what: string): string {
  if (max === undefined) return ''
  return min === undefined ? ` of at most ${max} ${what}` : ` of ${min} to ${max} ${what}`
}

/** Finds a lone surrogate, which is not a character and cannot be encoded as UTF-8. */
function findLoneSurrogate(value: unknown, pointer: string): Refusal | undefined {
  if (typeof value === 'string') {
    if (value.isWellFormed()) return undefined
    return { message: `${nameOf(pointer)} holds half a surrogate pair; send whole characters`, param: pointer }
  }
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const found = findLoneSurrogate(inner, `${pointer}/${quoted(key)}`)
    if (found) return found
  }
  return undefined
}
