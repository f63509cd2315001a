/* oxlint-disable unicorn/no-thenable -- a JSON Schema has a keyword of this name */
import type { JsonObject } from '../../../shared/kernel/events.ts'
import { Random } from '../../harness/seed.ts'

/** A schema that is made to stop a process, and a value that makes its check expensive. Both can be sent as JSON. */
export type Hostile = { name: string; schema: JsonObject; value: unknown }

const DRAFT_07 = 'http://json-schema.org/draft-07/schema#'

const times = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at))
const object = <T>(count: number, make: (at: number) => T, name = 'p'): Record<string, T> =>
  Object.fromEntries(times(count, (at) => [`${name}${at}`, make(at)]))

/** `wrap(wrap(…(inner)))`. */
function nest<T>(depth: number, inner: T, wrap: (inner: T) => T): T {
  let value = inner
  for (let at = 0; at < depth; at++) value = wrap(value)
  return value
}

/** Definitions d0 to d<count - 1>, each of which may refer to others. */
const graph = (count: number, make: (at: number) => JsonObject): JsonObject => ({
  $ref: '#/$defs/d0',
  $defs: object(count, make, 'd'),
})
const refTo = (at: number): JsonObject => ({ $ref: `#/$defs/d${at}` })
const last = (at: number, count: number, make: (next: number) => JsonObject): JsonObject =>
  at + 1 < count ? make(at + 1) : { type: 'string' }

const deepValue = (depth: number, key = 'a'): JsonObject => nest<JsonObject>(depth, {}, (inner) => ({ [key]: inner }))

const inText = (pattern: string): JsonObject => ({ type: 'object', properties: { text: { type: 'string', pattern } } })

const PATTERNS = [
  '^(a+)+$',
  '^(a|a)*$',
  '^(a|aa)+$',
  '^([a-zA-Z]+)*$',
  '(.*a){25}',
  '^(([a-z])+.)+[A-Z]([a-z])+$',
  '(x+x+)+y',
  '^(a?){50}a{50}$',
  '(?=(a+))a*b\\1',
  '(a{1,500}){1,500}',
  '((((a{1,30}){1,30}){1,30}){1,30})',
  '[',
  '('.repeat(250) + ')'.repeat(250),
  'a'.repeat(100_000),
  '(\\p{L}|\\p{N}){1,1000}',
  '(a*)*(b*)*(c*)*$',
]

const RECURSIVE: Record<string, JsonObject> = {
  'a reference to itself': { $ref: '#' },
  'a reference to itself under allOf': { allOf: [{ $ref: '#' }] },
  'a reference to itself under not': { not: { $ref: '#' } },
  'a reference to itself under if': { if: { $ref: '#' } },
  'a reference to itself under dependentSchemas': { dependentSchemas: { a: { $ref: '#' } } },
  'two references in a circle': graph(2, (at) => refTo(1 - at)),
  '900 references in a circle': graph(900, (at) => refTo((at + 1) % 900)),
  '900 references in a row': graph(900, (at) => last(at, 900, refTo)),
  '2^60 references': graph(60, (at) => last(at, 60, (next) => ({ anyOf: [refTo(next), refTo(next)] }))),
  '10^9 references': graph(10, (at) => last(at, 10, (next) => ({ oneOf: times(10, () => refTo(next)) }))),
  '2^60 evaluations of a nested value': {
    properties: { a: { anyOf: [{ allOf: [{ $ref: '#' }, false] }, { allOf: [{ $ref: '#' }, false] }] } },
  },
  'a dynamic reference': { $dynamicAnchor: 'a', properties: { a: { $dynamicRef: '#a' } } },
  'a remote reference': { $ref: 'http://169.254.169.254/latest/meta-data' },
  'a file reference': { $ref: 'file:///etc/passwd' },
  'a reference to a prototype': { $ref: '#/constructor/prototype' },
  'a reference to nothing': { $ref: '#/$defs/none' },
  'an id that moves references': { $id: 'http://a/', properties: { a: { $id: 'http://b/', $ref: '#/x' } } },
}

const LARGE: Record<string, () => JsonObject> = {
  '100,000 enum values': () => ({ enum: times(100_000, (at) => `value ${at}`) }),
  '1,000 enum values': () => ({ enum: times(1_000, (at) => `value ${at}`) }),
  '10 MB of text': () => ({ description: 'x'.repeat(10 * 1_024 * 1_024) }),
  '10 MB of numbers': () => ({ const: times(2_500_000, (at) => at % 10) }),
  'depth 500': () => nest<JsonObject>(250, {}, (inner) => ({ properties: { a: inner } })),
  'depth 1,000 of not': () => nest<JsonObject>(1_000, {}, (inner) => ({ not: inner })),
  'depth 31 of not': () => nest<JsonObject>(31, {}, (inner) => ({ not: inner })),
  'depth 1,000 of arrays': () => ({ const: nest<unknown>(1_000, [], (inner) => [inner]) }),
  'depth 15 of if': () =>
    nest<JsonObject>(15, { type: 'object' }, (inner) => ({ if: inner, then: inner, else: inner })),
  '100,000 properties': () => ({ properties: object(100_000, () => true) }),
  '900 properties': () => ({ properties: object(900, () => ({ type: 'string', minLength: 1, maxLength: 9 })) }),
  '20,000 required': () => ({ required: times(20_000, (at) => `r${at}`) }),
  '1,900 alternatives': () => ({ oneOf: times(1_900, (at) => ({ const: at })) }),
  '250 alternatives': () => ({ oneOf: times(250, (at) => ({ const: at })) }),
  '250 alternatives with unevaluatedProperties': () => ({
    unevaluatedProperties: false,
    allOf: times(250, (at) => ({ properties: { [`a${at}`]: {} } })),
  }),
  '900 definitions': () => ({
    properties: object(900, refTo),
    $defs: object(900, (at) => ({ type: 'object', required: [`q${at}`] }), 'd'),
  }),
  '300 patterns': () => ({ patternProperties: object(300, () => ({ type: 'string' }), '^([a-z]{1,20}){1,20}') }),
  '900 dependent schemas': () => ({ dependentSchemas: object(900, () => ({ required: ['a', 'b'] })) }),
  '900 dependencies of draft-07': () => ({ $schema: DRAFT_07, dependencies: object(900, () => ({ required: ['a'] })) }),
}

const WRONG: Record<string, JsonObject> = {
  'an unknown type': { type: 'strng' },
  'properties that are a number': { properties: 5 },
  'a property that is a number': { properties: { a: 5 } },
  'an asynchronous schema': { $async: true, type: 'object' },
  'an unknown dialect': { $schema: 'http://json-schema.org/draft-04/schema#' },
  '__proto__ as a property': JSON.parse('{"properties":{"__proto__":{"type":"string"}},"additionalProperties":false}'),
  'constructor as a property': {
    properties: { constructor: { type: 'string' } },
    required: ['constructor', 'toString'],
  },
  'code in a name': {
    properties: { '"];while(true);//': { const: '`${process.exit()}`' } },
    required: ["');for(;;);('"],
  },
  'code in a pattern': inText('/;while(true);/'),
  'a division by zero': { multipleOf: 0 },
}

const MANY = 30_000
const VALUES: Record<string, { schema: JsonObject; value: unknown }> = {
  'equal objects under uniqueItems': { schema: { uniqueItems: true }, value: times(MANY, (at) => ({ id: at, a: [] })) },
  'nested lists under uniqueItems': {
    schema: nest<JsonObject>(14, { uniqueItems: true }, (inner) => ({ uniqueItems: true, items: inner })),
    value: times(300, (at) => nest<unknown>(40, at, (inner) => [inner])),
  },
  'many problems': {
    schema: { items: { anyOf: [{ type: 'string' }, { required: ['a', 'b', 'c'] }] } },
    value: times(MANY, () => ({})),
  },
  'many names and many patterns': {
    schema: { patternProperties: object(200, () => ({ type: 'string' }), 'x.*y.*z') },
    value: object(MANY, () => 1, 'xyz'),
  },
  'many unevaluated names': {
    schema: { unevaluatedProperties: false, anyOf: times(100, (at) => ({ properties: { [`p${at}`]: {} } })) },
    value: object(MANY, () => 1),
  },
  'a long text under many patterns': {
    schema: { allOf: times(200, (at) => ({ pattern: `(a|b)*a(a|b){${at}}$` })) },
    value: 'ab'.repeat(2_000),
  },
  'many objects under a large enum': {
    schema: { items: { enum: times(900, (at) => ({ a: 'x'.repeat(30), b: at })) } },
    value: times(MANY, () => ({ a: 'x'.repeat(30), b: -1 })),
  },
}

/** A hostile schema that is not made yet: to make all of them takes seconds. */
export type HostileCase = { name: string; make(): Pick<Hostile, 'schema' | 'value'> }

export const hostileSchemas = (seed: number, count = 200): Hostile[] => hostileCases(seed, count).map(madeOf)

export const madeOf = ({ name, make }: HostileCase): Hostile => ({ name, ...make() })

/** The hostile schemas, always the same ones for a seed: those written by hand, and variations up to `count`. */
export function hostileCases(seed: number, count = 200): HostileCase[] {
  const text = { text: `${'a'.repeat(40)}!`, ...deepValue(60) }
  const written = [
    ...PATTERNS.map((pattern) => ({
      name: `the pattern ${pattern.slice(0, 40)}`,
      make: () => ({ schema: inText(pattern), value: text }),
    })),
    ...Object.entries(RECURSIVE).map(([name, schema]) => ({ name, make: () => ({ schema, value: text }) })),
    ...Object.entries(LARGE).map(([name, make]) => ({ name, make: () => ({ schema: make(), value: text }) })),
    ...Object.entries(WRONG).map(([name, schema]) => ({ name, make: () => ({ schema, value: text }) })),
    ...Object.entries(VALUES).map(([name, pair]) => ({ name, make: () => pair })),
  ]
  const random = new Random(seed)
  const varied = times(Math.max(0, count - written.length), (at) => vary(random.fork(String(at)), at))
  return [...written, ...varied]
}

const FAMILIES: readonly [string, (random: Random) => { schema: JsonObject; value: unknown }][] = [
  [
    'nested quantifiers',
    (random) => ({ schema: inText(randomPattern(random, 4)), value: { text: `${'ab'.repeat(100)}!` } }),
  ],
  ['random references', (random) => ({ schema: randomGraph(random), value: deepValue(random.between(1, 60)) })],
  ['random keywords', (random) => ({ schema: randomSchema(random, random.between(3, 9)), value: deepValue(20, 'p0') })],
  ['many properties', (random) => ({ schema: randomWide(random), value: object(random.between(10, 3_000), () => 1) })],
]

function vary(random: Random, at: number): HostileCase {
  const [name, make] = random.pick(FAMILIES)
  return { name: `${name} (${at})`, make: () => make(random) }
}

function randomPattern(random: Random, depth: number): string {
  if (depth === 0) return random.pick(['a', 'b', '.', '[ab]', '\\w', 'a|ab'])
  const inner = times(random.between(1, 3), () => randomPattern(random, depth - 1)).join(random.pick(['', '|']))
  return `(${inner})${random.pick(['*', '+', '?', '{1,30}', '{2,}', ''])}`
}

function randomGraph(random: Random): JsonObject {
  const count = random.between(2, 200)
  const link = () => refTo(random.between(0, count - 1))
  const links = () => times(random.between(1, 4), link)
  return graph(count, () =>
    random.pick<() => JsonObject>([
      () => ({ anyOf: links() }),
      () => ({ allOf: links() }),
      () => ({ properties: { a: { oneOf: links() } } }),
      () => ({ properties: { a: { not: link() } } }),
      () => ({ items: link(), additionalProperties: link() }),
    ])(),
  )
}

function randomSchema(random: Random, depth: number): JsonObject {
  if (depth === 0) return random.pick<JsonObject>([{ type: 'string' }, { required: ['a'] }, { uniqueItems: true }, {}])
  const inner = () => randomSchema(random, depth - 1)
  const list = () => times(random.between(1, 3), inner)
  const keyword = () =>
    random.pick<() => JsonObject>([
      () => ({ properties: object(random.between(1, 3), inner) }),
      () => ({ patternProperties: { '^(p+)+$': inner(), '.': inner() } }),
      () => ({ dependentSchemas: { p0: inner() } }),
      () => ({ if: inner(), then: inner(), else: inner() }),
      () => ({ unevaluatedProperties: inner(), allOf: list() }),
      () => ({ oneOf: list(), unevaluatedItems: false }),
      () => ({ contains: inner(), prefixItems: list() }),
      () => ({ not: inner(), propertyNames: { pattern: '(p|p)*0' } }),
    ])()
  return Object.assign({}, keyword(), keyword())
}

function randomWide(random: Random): JsonObject {
  const count = random.between(100, 1_500)
  const property = () =>
    random.pick<JsonObject>([{ type: 'string', minLength: 2 }, { minimum: 2, multipleOf: 3 }, { enum: [2, 3] }])
  return { properties: object(count, property), required: times(count, (at) => `r${at}`), unevaluatedProperties: false }
}
