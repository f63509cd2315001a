import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import type { JsonObject } from '../events.ts'
import type { Schema, Schemas } from './document.ts'

/** Why a body is refused, in a message for the caller. `param` is the JSON pointer of the wrong field (D2.3). */
export type Refusal = { message: string; param?: string }

export type SchemaCheck = {
  /** The fields that are read. Other fields of a body are ignored (D2.4). */
  fields: readonly string[]
  /** Checks a body that was reduced to `fields`. */
  refusalOf(body: JsonObject): Refusal | undefined
}

/**
 * Compiles one schema. Fields with `x-ignored` are not read; fields with `x-refused` must be absent, and its value is the
 * message.
 */
export function compileCheck(schemas: Schemas, name: string): SchemaCheck {
  const schema = schemas[name]
  if (!schema) throw new Error(`openapi.yaml has no schema ${name}`)
  const properties = Object.entries(schema.properties ?? {})
  const validate = compile(schemas, name)
  return {
    fields: properties.filter(([, property]) => property['x-ignored'] !== true).map(([field]) => field),
    refusalOf: (body) => (validate(body) ? findLoneSurrogate(body, '') : refusal(validate.errors?.[0])),
  }
}

function compile(schemas: Schemas, name: string): ValidateFunction {
  // A test checks the schemas themselves, so compiling their meta-schema, which takes 30 ms, is left out.
  const ajv = new Ajv2020({ strict: false, strictNumbers: true, validateSchema: false, meta: false, verbose: true })
  ajv.removeKeyword('minLength').removeKeyword('maxLength')
  ajv.addKeyword({ keyword: 'minLength', type: 'string', schemaType: 'number', compile: atLeast })
  ajv.addKeyword({ keyword: 'maxLength', type: 'string', schemaType: 'number', compile: atMost })
  return ajv.compile({ components: { schemas }, $ref: `#/components/schemas/${name}` })
}

/** Lengths are numbers of code points (D2.6). They are counted only when the number of UTF-16 units does not decide already. */
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
  if (error.keyword === 'required') {
    const param = `${error.instancePath}/${error.params['missingProperty']}`
    return { message: `${nameOf(param)} is required`, param }
  }
  const schema = error.parentSchema as Schema
  const message = schema['x-refused'] ?? `${nameOf(error.instancePath)} must be ${wanted(schema)}`
  return { message, param: error.instancePath }
}

/** Turns the pointer `/stop_sequences/3` into the readable `stop_sequences[3]`. */
const nameOf = (pointer: string): string =>
  pointer
    .slice(1)
    .replaceAll(/\/(\d+)/g, '[$1]')
    .replaceAll('/', '.')

function wanted(schema: Schema): string {
  if (schema['x-wanted'] !== undefined) return schema['x-wanted']
  if (schema.type === 'boolean') return 'true or false'
  if (schema.type === 'integer') return `a whole number from ${schema.minimum} to ${schema.maximum}`
  if (schema.type === 'string') return `a string of ${schema.minLength ?? 0} to ${schema.maxLength} characters`
  if (schema.type === 'array') return `a list of at most ${schema.maxItems} entries`
  return `of type ${schema.type}`
}

/** Finds a lone surrogate, which is not a character and cannot be encoded as UTF-8. */
function findLoneSurrogate(value: unknown, pointer: string): Refusal | undefined {
  if (typeof value === 'string') {
    if (value.isWellFormed()) return undefined
    return { message: `${nameOf(pointer)} holds half a surrogate pair; send whole characters`, param: pointer }
  }
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const found = findLoneSurrogate(inner, `${pointer}/${key}`)
    if (found) return found
  }
  return undefined
}
