import { expect } from 'chai'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import { createSchemaPaths } from '../../../shared/work/flows/schema-paths.ts'
import { countReads } from '../../support/counted.ts'

const has = (schema: JsonObject, path: string) => createSchemaPaths(schema).has(path === '' ? [] : path.split('.'))
const object = (properties: JsonObject, more: JsonObject = {}) => ({ type: 'object', properties, ...more })
const STRING = { type: 'string' }
const NUMBER = { type: 'number' }

describe('the paths of a schema', () => {
  const CASES: Record<string, [schema: JsonObject, present: string[], absent: string[]]> = {
    'declared properties': [
      object({ a: object({ b: STRING }), c: {} }),
      ['', 'a', 'a.b', 'c', 'c.any.thing'],
      ['d', 'a.c', 'a.b.c', 'b', 'toString', '__proto__', 'constructor'],
    ],
    'a schema that declares nothing': [{ type: 'object' }, ['a', 'a.b.c', '0'], []],
    'a schema whose list of properties is empty': [object({}), ['a', 'a.b'], []],
    'an empty schema': [{}, ['a', 'a.0.b'], []],
    'a property named like one of Object.prototype': [object({ constructor: STRING }), ['constructor'], ['toString']],
    'a closed object': [{ type: 'object', additionalProperties: false }, [], ['a']],
    'an object closed by unevaluatedProperties': [{ type: 'object', unevaluatedProperties: false }, [], ['a']],
    'an object that is open beside its properties': [
      object({ a: STRING }, { additionalProperties: true }),
      ['b'],
      ['a.x'],
    ],
    'a map': [{ type: 'object', additionalProperties: object({ n: NUMBER }) }, ['x', 'x.n'], ['x.m']],
    'properties by pattern': [object({ a: STRING }, { patternProperties: { '^x-': STRING } }), ['a', 'x-1'], ['a.b']],
    'a text': [STRING, [''], ['a', '0', 'length']],
    'a value of several types': [{ type: ['null', 'object'] }, ['a'], []],
    'a constant': [{ const: { a: 1 } }, ['a'], []],
    'an array': [{ type: 'array', items: object({ n: NUMBER }) }, ['0', '17.n'], ['n', '0.m', '01', '-1', 'length']],
    'an array without items': [{ type: 'array' }, ['0', '0.a'], ['a']],
    'a tuple': [
      { type: 'array', prefixItems: [STRING, object({ n: NUMBER })], items: false },
      ['0', '1.n'],
      ['2', '0.n'],
    ],
    'a tuple of draft-07': [{ type: 'array', items: [STRING], additionalItems: NUMBER }, ['0', '1'], ['0.a', '1.a']],
    'local references': [
      object(
        { a: { $ref: '#/$defs/x~1y' }, b: { $ref: '#/$defs/p%20q' } },
        {
          $defs: { 'x/y': object({ n: NUMBER }), 'p q': STRING },
        },
      ),
      ['a.n', 'b'],
      ['a.m', 'b.n'],
    ],
    'a schema that refers to itself': [
      object({ next: { $ref: '#' }, value: STRING }),
      ['next.next.next.value'],
      ['next.x'],
    ],
    'references in a circle': [
      { allOf: [{ $ref: '#/$defs/a' }], properties: { x: {} }, $defs: { a: { $ref: '#/$defs/a' } } },
      ['x'],
      ['y'],
    ],
    'a reference that cannot be followed': [
      object({ a: { $ref: '#anchor' }, b: { $ref: '#/no' } }),
      ['a.x', 'b.x'],
      ['c'],
    ],
    'a reference that cannot be followed beside properties': [
      object({
        a: { $ref: '#anchor', properties: { n: NUMBER } },
        b: { $ref: '#/properties/a/no', properties: { n: NUMBER } },
        c: { $ref: '#/type/0', properties: { n: NUMBER } },
        d: { $dynamicRef: '#any', properties: { n: NUMBER } },
        e: { $ref: '#/properties/e/default/0', properties: { n: NUMBER }, default: null },
      }),
      ['a.x', 'b.x', 'c.x', 'd.x', 'e.x'],
      ['f'],
    ],
    'a reference with a percent sign that escapes nothing': [
      object({ a: { $ref: '#/$defs/%zz' } }, { $defs: { '%zz': object({ n: NUMBER }) } }),
      ['a.n'],
      ['a.m'],
    ],
    'no properties by pattern': [object({ a: STRING }, { patternProperties: {} }), ['a'], ['b']],
    'an object or a text': [{ anyOf: [STRING, { type: 'object' }] }, ['a'], []],
    'allOf, of which one declares properties': [{ allOf: [object({ a: STRING }), { required: ['b'] }] }, ['a'], ['b']],
    anyOf: [{ anyOf: [object({ a: STRING }), object({ b: object({ c: NUMBER }) })] }, ['a', 'b.c'], ['c']],
    'oneOf with a text': [{ oneOf: [STRING, object({ a: STRING })] }, ['a'], ['b']],
    'oneOf of texts': [{ oneOf: [STRING, NUMBER] }, [], ['a']],
    'anyOf with true': [{ anyOf: [true, object({ a: STRING })] }, ['b'], []],
    'if, then and else': [
      object(
        { a: STRING },
        JSON.parse('{"then": {"properties": {"b": {}}}, "else": {"properties": {"c": {}}}}') as JsonObject,
      ),
      ['b', 'c'],
      ['d'],
    ],
    dependentSchemas: [object({ a: STRING }, { dependentSchemas: { a: object({ b: STRING }) } }), ['b'], ['c']],
    'a property that is forbidden': [object({ a: false }), [], ['a', 'a.b']],
    'a property that may be anything': [object({ a: true }), ['a', 'a.b'], ['b']],
  }
  for (const [what, [schema, present, absent]] of Object.entries(CASES)) {
    it(`follows ${what}`, () => {
      for (const path of present) expect(has(schema, path), `${path} exists`).to.equal(true)
      for (const path of absent) expect(has(schema, path), `${path} does not exist`).to.equal(false)
    })
  }

  it('tells whether every value is an object', () => {
    const describes = (schema: JsonObject) => createSchemaPaths(schema).describesObject
    const objects: JsonObject[] = [
      { type: 'object' },
      { type: ['object'] },
      { properties: { a: {} } },
      { $ref: '#/$defs/a', $defs: { a: { type: 'object' } } },
      { allOf: [{ type: 'object' }, { required: ['a'] }] },
      { allOf: [{ type: ['object', 'null'] }, { type: 'object' }] },
      { allOf: [{ properties: { a: {} } }, { required: ['a'] }] },
    ]
    const others: JsonObject[] = [
      {},
      { type: 'string' },
      { type: ['object', 'null'] },
      { type: 'array' },
      { anyOf: [true] },
    ]
    expect(objects.map(describes)).to.deep.equal(objects.map(() => true))
    expect(others.map(describes)).to.deep.equal(others.map(() => false))
  })

  it('many references into a hostile schema are followed a limited number of times', () => {
    const branches = Array.from({ length: 900 }, (_, i) => ({ $ref: `#/anyOf/${(i * 7) % 900}/properties/a` }))
    const schema = { anyOf: branches.map(($ref) => ({ properties: { a: { anyOf: [$ref, { $ref: '#' }] } } })) }
    const counted = countReads(schema)
    const paths = createSchemaPaths(counted.value)
    for (let i = 0; i < 200; i++) paths.has(Array.from({ length: 16 }, () => 'a'))
    expect(counted.reads).to.be.below(2_000_000)
  })
})
