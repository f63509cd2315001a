import { expect } from 'chai'
import { isStrictSchema } from '../../../shared/agent/providers/strict-schema.ts'
import type { JsonObject } from '../../../shared/kernel/events.ts'

const closed = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
})

const nested = (levels: number): JsonObject => (levels === 1 ? closed({}) : closed({ a: nested(levels - 1) }))

describe('a schema that OpenAI accepts as strict', () => {
  const strict: [what: string, schema: JsonObject][] = [
    [
      'a closed object whose properties are all required',
      closed({ a: { type: 'string' }, b: { type: ['number', 'null'] } }),
    ],
    ['one with a draft, a title and a description', closed({}, { $schema: 'x', title: 't', description: 'd' })],
    [
      'closed objects in arrays and alternatives',
      closed({ a: { type: 'array', items: closed({}), minItems: 1 }, b: { anyOf: [closed({}), { type: 'null' }] } }),
    ],
    ['closed definitions and references', closed({ a: { $ref: '#/$defs/a' } }, { $defs: { a: closed({}) } })],
    [
      'values and bounds',
      closed({ a: { type: 'string', enum: ['x'], format: 'date' }, b: { type: 'integer', minimum: 1 } }),
    ],
    ['a property that is named like a keyword', closed({ default: { type: 'string' } })],
    ['10 levels', nested(10)],
  ]
  for (const [what, schema] of strict) it(`is ${what}`, () => expect(isStrictSchema(schema)).to.equal(true))

  const others: [what: string, schema: JsonObject][] = [
    ['an empty schema', {}],
    ['an array at the top', { type: 'array', items: { type: 'string' } }],
    ['an open object', closed({}, { additionalProperties: true })],
    ['an object that does not say it is closed', { type: 'object', properties: {}, required: [] }],
    ['an object without properties', { type: 'object', required: [], additionalProperties: false }],
    ['an optional property', closed({ a: { type: 'string' } }, { required: [] })],
    ['an open object in a property', closed({ a: { type: 'object' } })],
    ['an open object that may be null', closed({ a: { type: ['object', 'null'] } })],
    ['an open object in an array', closed({ a: { type: 'array', items: { type: 'object' } } })],
    ['an array without a schema of its items', closed({ a: { type: 'array' } })],
    ['an open object in an alternative', closed({ a: { anyOf: [{ type: 'object' }] } })],
    ['an open definition', closed({}, { $defs: { a: { type: 'object' } } })],
    ['an open definition of draft-07', closed({}, { definitions: { a: { type: 'object' } } })],
    ['a value without a type', closed({ a: {} })],
    ['a boolean schema', closed({ a: true })],
    ['oneOf', closed({ a: { type: 'string', oneOf: [] } })],
    ['a default', closed({ a: { type: 'string', default: 'x' } })],
    ['a pattern', closed({ a: { type: 'string', pattern: '^a' } })],
    ['an unknown format', closed({ a: { type: 'string', format: 'uri' } })],
    ['11 levels', nested(11)],
  ]
  for (const [what, schema] of others) it(`is not ${what}`, () => expect(isStrictSchema(schema)).to.equal(false))
})
