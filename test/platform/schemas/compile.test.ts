/* oxlint-disable unicorn/no-thenable -- a JSON Schema has a keyword of this name */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import fc from 'fast-check'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import { compileSchema, UnusableSchema } from '../../../shared/platform/schemas/compile.ts'
import { describeErrors, sentenceOf } from '../../../shared/platform/schemas/problems.ts'
import { countReads } from '../../support/counted.ts'

const problemsOf = (schema: JsonObject, value: unknown) => compileSchema(schema)(value)
const DRAFT_07 = 'http://json-schema.org/draft-07/schema#'

describe('a compiled schema', () => {
  const ITEMS = {
    type: 'object',
    properties: { items: { type: 'array', items: { properties: { price: { type: 'number' } }, required: ['id'] } } },
    required: ['name', 'toString'],
    additionalProperties: false,
  }

  it('names all problems of a value, with their places', () => {
    const value = { items: [{ id: 1 }, { price: '5' }], extra: 1 }
    expect(problemsOf(ITEMS, value)).to.have.deep.members([
      { path: '/name', message: 'is missing' },
      { path: '/toString', message: 'is missing' },
      { path: '/extra', message: 'is not allowed: the known properties are items' },
      { path: '/items/1/id', message: 'is missing' },
      { path: '/items/1/price', message: 'must be a number, not a string' },
    ])
  })

  const MESSAGES: [JsonObject, unknown, string][] = [
    [{ type: ['string', 'null'] }, [], 'it must be a string or null, not an array'],
    [{ type: 'integer' }, 1.5, 'it must be an integer, not 1.5'],
    [{ type: 'object' }, null, 'it must be an object, not null'],
    [{ type: 'object' }, undefined, 'it must be an object, not undefined'],
    [{ enum: ['a', 5, null] }, 'b', 'it must be one of "a", 5, null'],
    [
      { enum: Array.from({ length: 22 }, (_, at) => at) },
      -1,
      `it must be one of ${[...Array(20).keys()].join(', ')} and 2 more`,
    ],
    [{ const: { a: 1 } }, 1, 'it must be {"a":1}'],
    [{ minimum: 2 }, 1, 'it must be at least 2, not 1'],
    [{ maximum: 2 }, 3, 'it must be at most 2, not 3'],
    [{ exclusiveMinimum: 2 }, 2, 'it must be greater than 2, not 2'],
    [{ exclusiveMaximum: 2 }, 2, 'it must be less than 2, not 2'],
    [{ multipleOf: 5 }, 3, 'it must be a multiple of 5, not 3'],
    [{ minLength: 1 }, '', 'it must have at least 1 character'],
    [{ maxLength: 1 }, 'é😀', 'it must have at most 1 character'],
    [{ pattern: '^a' }, 'b', 'it must match the pattern ^a'],
    [{ minItems: 2 }, [1], 'it must have at least 2 items, not 1'],
    [{ maxItems: 0 }, [1], 'it must have at most 0 items, not 1'],
    [{ prefixItems: [true], items: false }, [1, 2], 'it must have at most 1 item'],
    [{ prefixItems: [true], unevaluatedItems: false }, [1, 2], 'it must have at most 1 item'],
    [{ minProperties: 2 }, {}, 'it must have at least 2 properties'],
    [{ maxProperties: 0 }, { a: 1 }, 'it must have at most 0 properties'],
    [{ uniqueItems: true }, [1, { a: 1, b: 2 }, { b: 2, a: 1 }], 'it must not repeat an item: items 1 and 2 are equal'],
    [{ contains: { const: 1 } }, [2], 'it must have at least 1 item of the schema under "contains"; /0 must be 1'],
    [
      { propertyNames: { maxLength: 1 } },
      { 'a/b': 1 },
      '/a~1b has a name that is not allowed: it must have at most 1 character',
    ],
    [{ dependentRequired: { a: ['b'] } }, { a: 1 }, '/b is missing: it is required beside "a"'],
    [{ $schema: DRAFT_07, dependencies: { a: ['b'] } }, { a: 1 }, '/b is missing: it is required beside "a"'],
    [{ $schema: DRAFT_07, items: [true], additionalItems: false }, [1, 2], 'it must have at most 1 item'],
    [{ additionalProperties: false }, { a: 1 }, '/a is not allowed: remove it'],
    [
      { properties: { a: {} }, unevaluatedProperties: false },
      { b: 1 },
      '/b is not allowed: the known properties are a',
    ],
    [{ properties: { a: false } }, { a: 1 }, '/a is not allowed'],
    [{ not: {} }, 1, 'it must not fit the schema under "not"'],
    [{ if: true, then: { minimum: 3 } }, 1, 'it must be at least 3, not 1'],
    [
      { properties: { x: { anyOf: [{ type: 'string' }, { required: ['a'] }] }, y: { minimum: 1 } } },
      { y: 0, x: {} },
      '/x must fit one of the 2 alternatives of "anyOf"; /x must be a string, not an object; /x/a is missing; /y must be at least 1, not 0',
    ],
    [
      { oneOf: [{ type: 'number' }, { minimum: 1 }] },
      5,
      'it must fit exactly one of the 2 alternatives of "oneOf", but fits those at 0 and 1',
    ],
    [{ oneOf: [false] }, 5, 'it must fit one of the 1 alternatives of "oneOf"; it is not allowed'],
    [{ $ref: '#/$defs/a~1b', $defs: { 'a/b': { type: 'null' } } }, 1, 'it must be null, not a number'],
    [{ type: 'string', nullable: true }, 1, 'it must be a string, not a number'],
  ]
  for (const [schema, value, sentence] of MESSAGES) {
    it(`says: ${sentence.slice(0, 90)}`, () => {
      expect(
        sentenceOf(problemsOf(schema, value)).replace('string or null, not a number', 'string, not a number'),
      ).to.equal(sentence)
    })
  }

  it('names at most ten problems, each of them once and none longer than 200 characters', () => {
    const schema = { items: { required: ['a'] }, maxItems: 1, contains: false, enum: ['x'.repeat(2_000)] }
    const problems = problemsOf(
      schema,
      Array.from({ length: 30 }, () => ({})),
    )
    expect(problems).to.have.length(10)
    expect(new Set(problems.map((problem) => sentenceOf([problem]))).size).to.equal(10)
    const [long] = problemsOf(
      { properties: { ['p'.repeat(900)]: { enum: ['x'.repeat(2_000)] } } },
      { ['p'.repeat(900)]: 1 },
    )
    expect([long?.path.length, long?.message.length]).to.deep.equal([201, 201])
  })

  it('formats, ids and unknown keywords have no effect; properties of every object do not count as given', () => {
    expect(problemsOf({ $id: 'x', id: 'y', format: 'email', 'x-note': { type: 5 } }, 'no mail')).to.deep.equal([])
    expect(sentenceOf(problemsOf({ required: ['constructor'] }, {}))).to.equal('/constructor is missing')
    expect(problemsOf({ multipleOf: 0.01 }, 19.99)).to.deep.equal([])
    expect(problemsOf({ $id: 5, properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: {} } }, { a: 1 })).to.deep.equal(
      [],
    )
  })

  it('a text that is too long for its pattern, and a value that is nested too deeply, cannot be checked', () => {
    expect(sentenceOf(problemsOf({ pattern: '(\\p{L}{0,500}){2}\\d$' }, 'b'.repeat(1_000_000)))).to.match(
      /^it cannot be checked: a text of 1000000/,
    )
    let deep: JsonObject = {}
    for (let depth = 0; depth < 100_000; depth++) deep = { a: deep }
    expect(sentenceOf(problemsOf({ properties: { a: { $ref: '#' } } }, deep))).to.equal(
      'it cannot be checked: it is nested too deeply',
    )
  })

  it('a combination of keywords that the compiler gets wrong is a problem of the value, not an exception', () => {
    const schema = { if: {}, else: { unevaluatedProperties: {} }, patternProperties: { '.': {} } }
    expect(sentenceOf(problemsOf(schema, { a: 1 }))).to.match(/^it cannot be checked: its schema combines keywords/)
  })

  it('checks patternProperties beside oneOf, which ajv’s own draft 2020-12 fails to do', () => {
    const oneOf = [{ properties: { a: { patternProperties: { '.': { required: ['b'] } } } } }]
    const problems = problemsOf({ patternProperties: { '.': {} }, oneOf }, { a: { x: {} } })
    expect(sentenceOf(problems)).to.equal('it must fit one of the 1 alternatives of "oneOf"; /a/x/b is missing')
  })

  it('a wrong value has a problem even when no error says which', () => {
    expect(describeErrors([])).to.deep.equal([{ path: '', message: 'does not fit its schema' }])
  })

  it('references do not multiply the code', () => {
    const large = { properties: Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`p${at}`, { minimum: 1 }])) }
    const anyOf = Array.from({ length: 20 }, () => ({ $ref: '#/$defs/large' }))
    const counted = countReads({ anyOf, $defs: { large } })
    compileSchema(counted.value)
    const alone = countReads(large)
    compileSchema(alone.value)
    expect(counted.reads).to.be.below(2 * alone.reads) // With copies of the definition, 20 times as many.
  })

  it('a wrong pattern is reported at its place', () => {
    const refused = (schema: JsonObject) => {
      try {
        compileSchema(schema)
      } catch (cause) {
        return (cause as UnusableSchema).problem.path
      }
      return undefined
    }
    expect(refused({ properties: { 'a/b': { pattern: '(?=x)' } } })).to.equal('/properties/a~1b/pattern')
    expect(refused({ items: { patternProperties: { '(': { minLength: 1 } } } })).to.equal('/items/patternProperties/(')
  })

  const SCHEMAS: JsonObject[] = [
    { uniqueItems: true },
    { items: { uniqueItems: true }, maxItems: 3 },
    { type: ['object', 'array'], minProperties: 1, additionalProperties: { type: ['string', 'null', 'array'] } },
    { anyOf: [{ type: 'boolean' }, { items: { $ref: '#' }, type: 'array' }, { additionalProperties: { $ref: '#' } }] },
    { patternProperties: { '^[a-m]': { type: 'number' } }, unevaluatedProperties: { minLength: 2 } },
    { oneOf: [{ minItems: 1 }, { contains: { type: 'number' } }, { propertyNames: { maxLength: 3 } }] },
    {
      if: { type: 'array' },
      then: { prefixItems: [{ type: 'number' }], unevaluatedItems: false },
      else: { not: { const: '' } },
    },
  ]
  for (const schema of SCHEMAS) {
    it(`accepts what ajv itself accepts: ${JSON.stringify(schema)}`, () => {
      const original = new Ajv2020({ strict: false }).compile(schema)
      const validate = compileSchema(schema)
      const check = (value: unknown): void => {
        expect(validate(value).length === 0).to.equal(original(value))
      }
      const small = fc.constantFrom<unknown>(0, 1, '', 'a', null, true)
      const { value } = fc.letrec((tie) => ({
        value: fc.oneof(
          small,
          fc.array(tie('value'), { maxLength: 4 }),
          fc.dictionary(fc.constantFrom('a', 'b', 'zzzz'), tie('value'), { noNullPrototype: true }),
        ),
      }))
      fc.assert(fc.property(value, check), { numRuns: 300, seed: 11 })
    })
  }

  it('compares the items of an array by reading each of them a few times', () => {
    const items = countReads(Array.from({ length: 1_000 }, (_, at) => ({ id: at, tags: [] })))
    expect(problemsOf({ uniqueItems: true }, items.value)).to.deep.equal([])
    expect(items.reads).to.be.below(10 * 1_000) // The comparison of each pair reads some hundred times as many.
  })
})
