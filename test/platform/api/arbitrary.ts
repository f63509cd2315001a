import type { AnySchemaObject } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import type { ApiDocument } from '../../../shared/platform/api/document.ts'
import { at } from './operations.ts'

type Arbitrary = fc.Arbitrary<unknown>

/** Generates values that fit a schema of the document, from the keywords that the document uses, and no others. */
export function arbitraryOf(schema: AnySchemaObject, document: ApiDocument): Arbitrary {
  const inner = (each: AnySchemaObject) => arbitraryOf(each, document)
  if (typeof schema['$ref'] === 'string') return inner(at(document, schema['$ref']) as AnySchemaObject)
  if ('const' in schema) return fc.constant(schema['const'])
  if (Array.isArray(schema['enum'])) return fc.constantFrom(...(schema['enum'] as unknown[]))
  const choices = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(choices)) return fc.oneof(...choices.map(inner))
  const type: unknown = schema['type']
  if (Array.isArray(type)) return fc.oneof(...type.map((each: unknown) => inner({ ...schema, type: each })))
  if (type === 'string') return textOf(schema)
  if (type === 'integer') return fc.integer({ min: schema['minimum'] as number, max: schema['maximum'] as number })
  if (type === 'number') {
    const min = (schema['minimum'] ?? schema['exclusiveMinimum']) as number
    const minExcluded = schema['minimum'] === undefined
    return fc.double({ min, minExcluded, max: schema['maximum'] as number, noNaN: true })
  }
  if (type === 'null') return fc.constant(null)
  if (type === 'boolean') return fc.boolean()
  if (type === 'array')
    return fc.array(inner(schema['items'] as AnySchemaObject), {
      minLength: (schema['minItems'] ?? 0) as number,
      maxLength: (schema['maxItems'] ?? 5) as number,
    })
  if (type === 'object') return objectOf(schema, inner)
  if (Object.keys(schema).every((keyword) => ANY.has(keyword))) return anyValue
  throw new Error(`cannot generate from ${JSON.stringify(schema)}`)
}

/** No body may have a key `__proto__`. */
const anyValue = fc.jsonValue({ maxDepth: 3 }).filter((value) => !JSON.stringify(value).includes('"__proto__"'))

/** Keywords of a schema that every value fits, or every value but a list. */
const ANY: ReadonlySet<string> = new Set(['description', 'items'])

/** At this length and below, a text of the greatest length is generated too. */
const MAX_FILL = 10_000

/** Texts in code points, as JSON Schema counts them. */
function textOf(schema: AnySchemaObject): fc.Arbitrary<string> {
  const {
    pattern,
    format,
    minLength = 0,
    maxLength = 1_000,
    not,
  } = schema as {
    pattern?: string
    format?: string
    minLength?: number
    maxLength?: number
    not?: { pattern: string }
  }
  if (format === 'uri') return fc.webUrl({ validSchemes: ['http', 'https', 'ftp'], withQueryParameters: true })
  const fits = pattern === undefined ? () => true : (text: string) => new RegExp(pattern, 'u').test(text)
  const isRight = (text: string) => {
    const { length } = Array.from(text)
    const isExcluded = not !== undefined && new RegExp(not.pattern, 'u').test(text)
    return length >= minLength && length <= maxLength && fits(text) && !isExcluded
  }
  const any = fc
    .string({ unit: 'binary', minLength, maxLength: Math.min(maxLength, minLength + 20) })
    .filter(wellFormed)
  const special = fc.array(fc.constantFrom(...SPECIAL), { minLength: 1, maxLength: 3 }).map((texts) => texts.join(''))
  if (pattern === undefined) return fc.oneof(any, longest(any, maxLength), special).filter(isRight)
  const matching = fc.stringMatching(new RegExp(pattern, 'u'))
  return fc.oneof(matching, longest(matching, maxLength), any, special).filter(isRight)
}

/** Texts that checks often treat in a special way, of which only those that the schema allows are taken. */
const SPECIAL = [
  '',
  ' ',
  '\t\n',
  '\u00a0\u3000\ufeff',
  '\u0085',
  '\u0000',
  '\u007f',
  'a\u200b',
  '__proto__',
  'constructor',
  '😀',
]

const wellFormed = (text: string) => text.isWellFormed()

/** Repeats a text up to the greatest length, which a tool may do. */
const longest = (texts: fc.Arbitrary<string>, maxLength: number): fc.Arbitrary<string> =>
  texts.map((text) => {
    const points = Array.from(text === '' ? 'a' : text)
    return Array.from({ length: Math.min(maxLength, MAX_FILL) }, (_, i) => points[i % points.length]).join('')
  })

function objectOf(schema: AnySchemaObject, inner: (schema: AnySchemaObject) => Arbitrary): Arbitrary {
  const fields = Object.entries((schema['properties'] ?? {}) as Record<string, AnySchemaObject>)
  // `not: {}` allows no value, so the field must be absent.
  const possible = fields.filter(([, field]) => !('not' in field)).map(([name, field]) => [name, inner(field)])
  const record = fc.record(Object.fromEntries(possible) as Record<string, Arbitrary>, {
    requiredKeys: (schema['required'] ?? []) as string[],
  })
  const whole = record.map((value) => withoutConflicts(schema, value))
  const others: unknown = schema['patternProperties'] ? true : schema['additionalProperties']
  if (fields.length === 0 && others === true) return anyObject
  if (typeof others !== 'object' || others === null) return whole
  const { not, ...shape } = schema['propertyNames'] as AnySchemaObject & { not?: { const: string } }
  const names = (inner({ type: 'string', ...shape }) as fc.Arbitrary<string>).filter(
    (name) => name !== not?.const && name !== '__proto__',
  )
  const table = fc.dictionary(names, inner(others as AnySchemaObject), {
    maxKeys: (schema['maxProperties'] ?? 5) as number,
  })
  return fc.tuple(whole, table).map(([known, more]) => ({ ...more, ...known }))
}

/** An object of any content, which the API passes on as it is. A key `__proto__` is refused everywhere (D2.4). */
const anyObject: Arbitrary = fc
  .dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 3 })
  .filter((value) => !JSON.stringify(value).includes('__proto__'))

/** Drops fields whose companions are absent, and fields that another one excludes. */
function withoutConflicts(schema: AnySchemaObject, value: Record<string, unknown>): Record<string, unknown> {
  const needed = Object.entries((schema['dependentRequired'] ?? {}) as Record<string, string[]>)
  const lonely = needed.filter(([, names]) => !names.every((name) => Object.hasOwn(value, name))).map(([name]) => name)
  const excluding = Object.entries((schema['dependentSchemas'] ?? {}) as Record<string, AnySchemaObject>)
  const excluded = excluding
    .filter(([name]) => Object.hasOwn(value, name))
    .flatMap(([, { properties }]) => Object.keys(properties as object))
  return Object.fromEntries(Object.entries(value).filter(([name]) => ![...lonely, ...excluded].includes(name)))
}
