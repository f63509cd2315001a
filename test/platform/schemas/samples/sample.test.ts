import { expect } from 'chai'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { createSchemaCheckers } from '../../../../shared/platform/schemas/checker.ts'
import { sampleOf } from '../../../../shared/platform/schemas/samples/sample.ts'

const TREE = {
  $ref: '#/$defs/node',
  $defs: {
    node: {
      type: 'object',
      properties: {
        name: { type: 'string' },
        left: { $ref: '#/$defs/node' },
        children: { type: 'array', items: { $ref: '#/$defs/node' } },
      },
      required: ['name', 'children'],
      additionalProperties: false,
    },
  },
}

const ENDLESS = { ...TREE, $defs: { node: { ...TREE.$defs.node, required: ['name', 'left'] } } }

const names = Array.from({ length: 1_000 }, (_, i) => `p${i}`)
const REPEATED = {
  allOf: Array.from({ length: 400 }, () => ({ $ref: '#/$defs/many' })),
  $defs: { many: { properties: Object.fromEntries(names.map((name) => [name, {}])), required: names } },
}

/** Each with a part of the value that a reader expects. */
const SCHEMAS: readonly (readonly [what: string, schema: JsonObject, shows: string])[] = [
  ['a text', { type: 'string' }, 'demo text'],
  ['a long text', { type: 'string', minLength: 40, maxLength: 40 }, 'demo'],
  ['a short text', { type: 'string', maxLength: 3 }, 'ext'],
  ['a choice', { enum: ['low', 'high'] }, 'low'],
  ['a constant', { const: { a: [1] } }, '[1]'],
  ['an example', { type: 'string', pattern: '^[A-Z]{3}$', examples: ['ABC'] }, 'ABC'],
  ['a whole number above a limit', { type: 'integer', exclusiveMinimum: 4 }, '5'],
  ['a number between open limits', { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 }, '0.5'],
  ['a negative number', { type: 'number', maximum: -3 }, '-3'],
  ['a multiple', { type: 'integer', minimum: 10, multipleOf: 7 }, '14'],
  ['cents', { type: 'number', multipleOf: 0.01, minimum: 0.5 }, '1'],
  [
    'formats',
    {
      type: 'object',
      required: ['at', 'id', 'mail'],
      properties: {
        at: { type: 'string', format: 'date-time' },
        id: { type: 'string', format: 'uuid' },
        mail: { type: 'string', format: 'email' },
      },
    },
    '@example.com',
  ],
  [
    'items that differ',
    {
      type: 'array',
      minItems: 3,
      uniqueItems: true,
      items: {
        type: 'object',
        properties: { day: { type: 'string', format: 'date' }, n: { type: 'integer' } },
        required: ['day', 'n'],
      },
    },
    '2026-02-02',
  ],
  [
    'a tuple',
    { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }], items: false, minItems: 2 },
    'demo',
  ],
  [
    'a tuple of draft-07',
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'array',
      items: [{ type: 'string' }, { type: 'integer' }],
      additionalItems: false,
    },
    'demo',
  ],
  ['a type or null', { type: ['string', 'null'] }, 'demo'],
  [
    'alternatives, the first of which is impossible',
    { anyOf: [{ type: 'string', pattern: '^x+y$' }, { type: 'boolean' }] },
    'true',
  ],
  [
    'parts',
    {
      allOf: [
        { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
        { properties: { b: { type: 'integer' } }, required: ['b'] },
      ],
    },
    '"b":1',
  ],
  ['a property without a schema', { type: 'object', required: ['free'] }, 'demo free'],
  [
    'an optional property that is impossible',
    { type: 'object', properties: { code: { type: 'string', pattern: '^[A-Z]$' }, name: { type: 'string' } } },
    '{"name":"demo name"}',
  ],
  ['a tree', TREE, 'demo name'],
]

const IMPOSSIBLE: readonly (readonly [what: string, schema: JsonObject, says: RegExp])[] = [
  [
    'a pattern',
    { type: 'object', properties: { code: { type: 'string', pattern: '^[A-Z]{3}$' } }, required: ['code'] },
    /^\/properties\/code .*`pattern`.*`examples`/,
  ],
  ['a negation', { not: { type: 'string' } }, /^ .*`not`/],
  ['a number that does not exist', { type: 'integer', minimum: 2, maximum: 1 }, /integer/],
  ['a type that refers to itself without end', ENDLESS, /no end/],
  ['a reference in a circle', { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }, /refers to itself/],
  ['a million items', { type: 'array', minItems: 1e9, items: { type: 'null' } }, /too large/],
  ['a long text', { type: 'string', minLength: 1e9 }, /string/],
  ['a reference that is no part of a URI', { $ref: '#/%' }, /not followed/],
  ['parts that repeat many properties', REPEATED, /too many/],
]

describe('the values that are made from schemas', () => {
  const checkers = createSchemaCheckers()
  const checker = checkers.of(DEFAULT_TENANT)
  after(() => checkers.close())

  for (const [what, schema, shows] of SCHEMAS)
    it(`${what} fits, and is the same each time`, async () => {
      const sample = sampleOf(schema)
      if (!('value' in sample)) throw new Error(sample.problem)
      expect(await checker.check(schema, sample.value), JSON.stringify(sample.value)).to.deep.equal([])
      expect(JSON.stringify(sample.value)).to.include(shows)
      expect(sampleOf(schema)).to.deep.equal(sample)
    })

  for (const [what, schema, says] of IMPOSSIBLE)
    it(`${what} is refused with its place`, () => {
      const sample = sampleOf(schema)
      expect('problem' in sample ? `${sample.path} ${sample.problem}` : 'a value').to.match(says)
    })
})
