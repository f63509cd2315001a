import { isJsonObject } from '../../kernel/json.ts'

/** A schema inside a keyword's value. `key` is its JSON pointer within that value, empty for the value itself. */
export type Subschema = { key: readonly string[]; schema: unknown }

/** How a keyword is read: the rule for its value, and the schemas in it. */
export type Keyword = {
  /** Describes the problem of a value, as the end of a sentence about the keyword. */
  problem(value: unknown): string | undefined
  subschemas?(value: unknown): Subschema[]
  /** Whether its schemas apply to the same value as the schema around them, not to a part of the value. */
  isInPlace?: boolean
}

const MAX_MEMBERS = 1_000
const MAX_BRANCHES = 250
const MAX_PATTERN_CHARS = 512

const TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']

const isStrings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((entry) => typeof entry === 'string')

const expect =
  (isRight: (value: unknown) => boolean, wanted: string) =>
  (value: unknown): string | undefined =>
    isRight(value) ? undefined : `must be ${wanted}`

const refuse = (advice: string): Keyword => ({ problem: () => `is not supported: ${advice}` })

const one = (value: unknown): Subschema[] => [{ key: [], schema: value }]
const listed = (value: unknown): Subschema[] =>
  Array.isArray(value) ? value.map((schema, at) => ({ key: [String(at)], schema })) : []
const mapped = (value: unknown): Subschema[] =>
  isJsonObject(value) ? Object.entries(value).map(([key, schema]) => ({ key: [key], schema })) : []

const schema = (isInPlace = false): Keyword => ({ problem: () => undefined, subschemas: one, isInPlace })

function schemas(maxEntries: number, isInPlace = false): Keyword {
  const isRight = (value: unknown) => Array.isArray(value) && value.length > 0 && value.length <= maxEntries
  return { problem: expect(isRight, `a list of 1 to ${maxEntries} schemas`), subschemas: listed, isInPlace }
}

const isSmallObject = (value: unknown): boolean => isJsonObject(value) && Object.keys(value).length <= MAX_MEMBERS
const SCHEMA_MAP = `an object of at most ${MAX_MEMBERS} schemas`
const schemaMap = (isInPlace = false): Keyword => ({
  problem: expect(isSmallObject, SCHEMA_MAP),
  subschemas: mapped,
  isInPlace,
})

const isPattern = (value: unknown): boolean => typeof value === 'string' && value.length <= MAX_PATTERN_CHARS
const PATTERN = `a regular expression of at most ${MAX_PATTERN_CHARS} characters`

const isSmallList = (value: unknown): value is unknown[] => Array.isArray(value) && value.length <= MAX_MEMBERS
const isNames = (value: unknown): value is string[] => isSmallList(value) && isStrings(value)
const NAMES = `a list of at most ${MAX_MEMBERS} property names`

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0
const isType = (value: unknown): boolean => typeof value === 'string' && TYPES.includes(value)
const isTypes = (value: unknown): boolean =>
  isType(value) ||
  (Array.isArray(value) && value.length > 0 && new Set(value).size === value.length && value.every(isType))

const count: Keyword = { problem: expect(isCount, 'a whole number from 0') }
const number: Keyword = { problem: expect(Number.isFinite, 'a number') }
const flag: Keyword = { problem: expect((value) => typeof value === 'boolean', 'true or false') }

/** Draft-07: each property maps to a schema or to the names of other properties. */
const dependencies: Keyword = {
  problem: expect(isSmallObject, `an object of at most ${MAX_MEMBERS} schemas or lists of property names`),
  subschemas: (value) => mapped(value).filter((entry) => !isNames(entry.schema)),
  isInPlace: true,
}

const items: Keyword = {
  problem: (value) => (Array.isArray(value) ? 'must be one schema: use prefixItems for a list of schemas' : undefined),
  subschemas: one,
}

/** Draft-07: one schema for all items, or a list of schemas. */
const itemsOrList: Keyword = {
  problem: (value) => (Array.isArray(value) ? schemas(MAX_MEMBERS).problem(value) : undefined),
  subschemas: (value) => (Array.isArray(value) ? listed(value) : one(value)),
}

const DYNAMIC = 'use $ref with a JSON pointer, for example {"$ref": "#/$defs/name"}'

const SHARED: Record<string, Keyword> = {
  $ref: { problem: expect((value) => typeof value === 'string', 'a JSON pointer, for example "#/$defs/name"') },
  $defs: schemaMap(),
  definitions: schemaMap(),
  $dynamicRef: refuse(DYNAMIC),
  $recursiveRef: refuse(DYNAMIC),
  $dynamicAnchor: refuse(DYNAMIC),
  $recursiveAnchor: refuse(DYNAMIC),
  $async: refuse('remove it'),
  type: { problem: expect(isTypes, `one of ${TYPES.join(', ')}, or a list of some of them`) },
  enum: {
    problem: expect((value) => isSmallList(value) && value.length > 0, `a list of 1 to ${MAX_MEMBERS} values`),
  },
  format: { problem: expect((value) => typeof value === 'string', 'a string') },
  multipleOf: { problem: expect((value) => Number.isFinite(value) && (value as number) > 0, 'a number above 0') },
  pattern: { problem: expect(isPattern, PATTERN) },
  required: { problem: expect(isNames, NAMES) },
  dependentRequired: {
    problem: expect(
      (value) => isJsonObject(value) && isSmallObject(value) && Object.values(value).every(isNames),
      `an object of at most ${MAX_MEMBERS} lists of property names`,
    ),
  },
  uniqueItems: flag,
  allOf: schemas(MAX_BRANCHES, true),
  anyOf: schemas(MAX_BRANCHES, true),
  oneOf: schemas(MAX_BRANCHES, true),
  prefixItems: schemas(MAX_MEMBERS),
  properties: schemaMap(),
  dependentSchemas: schemaMap(true),
  dependencies,
  patternProperties: {
    problem: (value) =>
      isJsonObject(value) && isSmallObject(value)
        ? expect(
            (keys) => (keys as string[]).every(isPattern),
            `an object whose keys are ${PATTERN}`,
          )(Object.keys(value))
        : `must be ${SCHEMA_MAP}`,
    subschemas: mapped,
  },
}

const named = (names: string, keyword: Keyword): Record<string, Keyword> =>
  Object.fromEntries(names.split(' ').map((name) => [name, keyword]))

Object.assign(
  SHARED,
  named('not if then else', schema(true)),
  named('additionalProperties unevaluatedProperties propertyNames contains additionalItems unevaluatedItems', schema()),
  named('minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains', count),
  named('minimum maximum exclusiveMinimum exclusiveMaximum', number),
)

/** The supported dialects of JSON Schema (D6.3). */
export type Draft = '2020-12' | '07'

/** The supported keywords, by name. All others have no effect. */
export const KEYWORDS: Record<Draft, ReadonlyMap<string, Keyword>> = {
  '2020-12': new Map(Object.entries({ ...SHARED, items })),
  '07': new Map(Object.entries({ ...SHARED, items: itemsOrList })),
}

/** The dialect that `$schema` names; `undefined` when it is another one. Without `$schema`: 2020-12. */
export function draftOf(name: unknown): Draft | undefined {
  if (name === undefined) return '2020-12'
  const match =
    typeof name === 'string' && /^https?:\/\/json-schema\.org\/draft(?:-|\/)(07|2020-12)\/schema#?$/.exec(name)
  return match ? (match[1] as Draft) : undefined
}
