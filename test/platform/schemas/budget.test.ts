// Tests budget.ts, keywords.ts and structure.ts: the schemas that are refused before they are compiled.

/* oxlint-disable unicorn/no-thenable -- a JSON Schema has a keyword of this name */
import { expect } from 'chai'
import fc from 'fast-check'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import { budgetProblem } from '../../../shared/platform/schemas/budget.ts'
import { compileSchema, UnusableSchema } from '../../../shared/platform/schemas/compile.ts'
import { countReads } from '../../support/counted.ts'

const times = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at))
const object = <T>(count: number, make: (at: number) => T): Record<string, T> =>
  Object.fromEntries(times(count, (at) => [`d${at}`, make(at)]))
const nest = (depth: number, wrap: (inner: JsonObject) => JsonObject): JsonObject => {
  let schema: JsonObject = {}
  for (let at = 0; at < depth; at++) schema = wrap(schema)
  return schema
}
const refTo = (at: number) => ({ $ref: `#/$defs/d${at}` })

const DRAFT_07 = 'http://json-schema.org/draft-07/schema#'

describe('the budget of a schema', () => {
  const LIMITS: [string, (amount: number) => JsonObject, number, string][] = [
    ['64 KiB', (chars) => ({ description: 'x'.repeat(chars) }), 65_517, ' is larger than 64 KiB'],
    ['64 KiB of UTF-8', (chars) => ({ description: 'é'.repeat(chars) }), 32_758, ' is larger than 64 KiB'],
    ['64 KiB in names', (chars) => ({ ['x'.repeat(chars)]: 1 }), 65_529, ' is larger than 64 KiB'],
    ['32 levels', (depth) => nest(depth - 1, (inner) => ({ not: inner })), 32, `${'/not'.repeat(32)} is nested deeper`],
    ['2,000 objects', (count) => ({ x: times(count - 2, () => ({})) }), 2_000, ' has more than 2000 objects'],
    ['1,000 enum values', (count) => ({ enum: times(count, (at) => at) }), 1_000, '/enum must be a list of 1 to 1000'],
    [
      '1,000 properties',
      (count) => ({ properties: object(count, () => true) }),
      1_000,
      '/properties must be an object',
    ],
    ['1,000 required names', (count) => ({ required: times(count, String) }), 1_000, '/required must be a list'],
    ['250 alternatives', (count) => ({ anyOf: times(count, () => true) }), 250, '/anyOf must be a list of 1 to 250'],
    ['a pattern of 512', (chars) => ({ pattern: 'a'.repeat(chars) }), 512, '/pattern must be a regular expression'],
    [
      'a pattern of 512 as a name',
      (chars) => ({ patternProperties: { ['a'.repeat(chars)]: {} } }),
      512,
      '/patternProperties must be an object whose keys',
    ],
    [
      '10,000 evaluations of a value',
      (count) => ({
        anyOf: times(98, () => refTo(0)),
        $defs: { d0: { allOf: times(98, () => ({})) }, d1: { anyOf: times(count - 9_803, () => ({})) } },
        not: refTo(1),
      }),
      10_000,
      ' checks one value against more than 10000 schemas',
    ],
  ]
  for (const [name, make, most, problem] of LIMITS) {
    it(`allows ${name}, and no more`, () => {
      expect(budgetProblem(make(most))).to.equal(undefined)
      expect(textOf(make(most + 1))).to.match(new RegExp(`^${problem.replaceAll('$', '\\$')}`))
    })
  }

  it('a schema of any depth and size is refused after the first part of it, without overflowing the stack', () => {
    const LARGE: [JsonObject, string][] = [
      [nest(200_000, (inner) => ({ not: inner })), 'is nested deeper than 32 levels'],
      [{ enum: times(300_000, () => 1) }, 'has more than 65536 values'],
      [{ a: times(2_000, () => ({ b: [] })), c: times(60_000, () => ({})) }, 'has more than 2000 objects'],
      [{ description: 'x'.repeat(1_000_000) }, 'is larger than 64 KiB'],
    ]
    for (const [schema, problem] of LARGE) {
      const counted = countReads(schema)
      expect(textOf(counted.value)).to.include(problem)
      expect(counted.reads).to.be.below(5_000)
    }
  })

  const WRONG: [JsonObject, string][] = [
    [{ type: 'strng' }, '/type must be one of array, boolean'],
    [{ type: ['string', 'string'] }, '/type must be one of'],
    [{ type: [] }, '/type must be one of'],
    [{ properties: 5 }, '/properties must be an object of at most 1000 schemas'],
    [{ properties: { 'a/b~': 5 } }, '/properties/a~1b~0 must be a schema: an object, true or false'],
    [{ allOf: {} }, '/allOf must be a list of 1 to 250 schemas'],
    [{ allOf: [{}, 'x'] }, '/allOf/1 must be a schema'],
    [{ allOf: [] }, '/allOf must be a list of 1 to 250 schemas'],
    [{ enum: [] }, '/enum must be a list of 1 to 1000 values'],
    [{ required: ['a', 5] }, '/required must be a list of at most 1000 property names'],
    [{ dependentRequired: { a: [5] } }, '/dependentRequired must be an object'],
    [{ dependencies: { a: ['b', 5] } }, '/dependencies/a must be a schema'],
    [{ minLength: -1 }, '/minLength must be a whole number from 0'],
    [{ maxItems: 1.5 }, '/maxItems must be a whole number from 0'],
    [{ minimum: '5' }, '/minimum must be a number'],
    [{ exclusiveMinimum: true }, '/exclusiveMinimum must be a number'],
    [{ multipleOf: 0 }, '/multipleOf must be a number above 0'],
    [{ uniqueItems: 'yes' }, '/uniqueItems must be true or false'],
    [{ items: [{}] }, '/items must be one schema: use prefixItems'],
    [{ pattern: {} }, '/pattern must be a regular expression'],
    [{ nullable: true }, '/nullable is not supported here: add "null" to "type"'],
    [{ $async: true }, '/$async is not supported: remove it'],
    [{ items: { $dynamicRef: '#a' } }, '/items/$dynamicRef is not supported: use $ref'],
    [{ properties: { a: { $id: 'http://a/' } } }, '/properties/a/$id is allowed only at the top'],
    [JSON.parse('{"properties":{"__proto__":{}}}'), '/properties/__proto__ must have another name'],
    [{ $schema: 'http://json-schema.org/draft-04/schema#' }, '/$schema must be https://json-schema.org/draft/2020-12'],
    [{ $schema: 5 }, '/$schema must be'],
    [{ $ref: 'http://a/b' }, '/$ref must lead to a place in this schema'],
    [{ $ref: '#anchor' }, '/$ref must lead to a place in this schema'],
    [{ $ref: 5 }, '/$ref must be a JSON pointer'],
    [{ items: { $ref: '#/$defs/a' } }, '/items/$ref leads to no schema'],
    [{ $ref: '#/constructor' }, '/$ref leads to no schema'],
    [{ $ref: '#/$defs', $defs: { type: 5 } }, '/$defs/type must be'],
    [{ $ref: '#/x', x: [] }, '/x must be a schema'],
    [{ $ref: '#/x/y', x: { $id: 'http://a/', y: {} } }, '/$ref leads to no schema'],
  ]
  for (const [schema, problem] of WRONG) {
    it(`refuses ${JSON.stringify(schema)}`, () => {
      expect(textOf(schema).slice(0, problem.length)).to.equal(problem)
    })
  }

  const ENDLESS: JsonObject[] = [
    { $ref: '#' },
    { not: { $ref: '#' } },
    { if: true, else: { $ref: '#' } },
    { dependentSchemas: { a: { $ref: '#' } } },
    { items: { anyOf: [{ $ref: '#/items' }] } },
    { properties: { a: refTo(0) }, $defs: { d0: refTo(1), d1: { oneOf: [{}, refTo(0)] } } },
  ]
  for (const schema of ENDLESS) {
    it(`refuses the endless reference of ${JSON.stringify(schema)}`, () => {
      expect(textOf(schema)).to.match(/refers to itself without end: put the reference under properties or items$/)
    })
  }

  const RIGHT: [string, JsonObject][] = [
    ['recursion through the value', { properties: { a: { $ref: '#' } }, items: { $ref: '#/properties/a' } }],
    ['two references to the same schema', { allOf: [refTo(0), refTo(0)], $defs: { d0: { items: refTo(0) } } }],
    ['a reference to a place that is no keyword', { $ref: '#/components/a%20b', components: { 'a b': {} } }],
    [
      'keywords of draft-07',
      { $schema: DRAFT_07, items: [{}], dependencies: { a: ['b'], c: {} }, definitions: { a: {} } },
    ],
    ['draft 2020-12 by name', { $schema: 'https://json-schema.org/draft/2020-12/schema', prefixItems: [true] }],
    ['properties that are named like keywords', { properties: { $ref: {}, $id: {}, type: {}, constructor: {} } }],
    ['values that look like schemas', { const: { type: 5 }, enum: [{ $ref: 'http://a' }], default: { items: 5 } }],
    ['null beside a type', { type: 'string', nullable: true }],
  ]
  for (const [name, schema] of RIGHT) {
    it(`allows ${name}`, () => expect(budgetProblem(schema)).to.equal(undefined))
  }

  it('a schema that fits the budget compiles, or is refused with a reason, whatever its keywords hold', () => {
    fc.assert(
      fc.property(anySchema(), (schema) => {
        if (budgetProblem(schema)) return
        try {
          compileSchema(schema)({ a: 1 })
        } catch (cause) {
          expect(cause).to.be.instanceOf(UnusableSchema)
          expect((cause as UnusableSchema).problem.path).to.match(/pattern/)
        }
      }),
      { numRuns: 300, seed: 11 },
    )
  })
})

function textOf(schema: JsonObject): string {
  const problem = budgetProblem(schema)
  return problem ? `${problem.path} ${problem.message}` : 'no problem'
}

const KEYWORDS =
  '$ref $defs type enum const properties required items prefixItems anyOf not if then pattern patternProperties minimum minLength uniqueItems contains minContains dependentSchemas dependencies propertyNames additionalProperties format nullable'

/** Objects of keywords, with values that are often right: schemas, lists and maps of schemas, names, numbers. */
function anySchema(): fc.Arbitrary<JsonObject> {
  const { schema } = fc.letrec<{ schema: JsonObject; value: unknown }>((tie) => ({
    schema: fc.dictionary(fc.constantFrom(...KEYWORDS.split(' ')), tie('value'), { maxKeys: 3 }),
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom<unknown>('string', 'object', '#', '#/$defs/a', 'a', '^(a', 0, 1, true, null),
      tie('schema'),
      fc.array(tie('schema'), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom('a', 'b', '^a'), tie('schema'), { maxKeys: 2 }),
      fc.array(fc.constantFrom('string', 'null', 'a'), { maxLength: 2 }),
    ),
  }))
  return schema
}
