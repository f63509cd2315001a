import type { ErrorObject } from 'ajv'
import { type AppError, invalidRequest } from '../../kernel/errors.ts'
import { escapePointer, isJsonObject } from '../../kernel/json.ts'
import { truncate } from '../../kernel/text.ts'
import type { SchemaProblem } from './port.ts'

const MAX_PROBLEMS = 10
const MAX_CHARS = 200
const MAX_LISTED = 20

/** Describes the errors of an invalid value in words that a model can act on: the first ten, without repetitions, and at least one. */
export function describeErrors(errors: readonly ErrorObject[]): SchemaProblem[] {
  const problems = new Map<string, SchemaProblem>()
  const precise = errors.slice(0, MAX_READ).filter(({ keyword }) => !SUMMARIES.has(keyword))
  for (const error of wholesFirst(precise)) {
    const problem = describe(error)
    problems.set(textOf(problem), problem)
    if (problems.size === MAX_PROBLEMS) break
  }
  return problems.size > 0 ? [...problems.values()] : [{ path: '', message: 'does not fit its schema' }]
}

/** The problems as one sentence, for example `/items/3/price must be a number, not a string; /id is missing`. */
export const sentenceOf = (problems: readonly SchemaProblem[]): string => problems.map(textOf).join('; ')

/** The error for a request with an unusable schema in one of its fields. */
export const unusableSchema = (field: string, problem: SchemaProblem): AppError =>
  invalidRequest(`the schema cannot be used: ${sentenceOf([problem])}`, { param: field + problem.path })

const textOf = ({ path, message }: SchemaProblem): string => `${path || 'it'} ${message}`

/** Keywords whose errors only repeat the errors before them. */
const SUMMARIES: ReadonlySet<string> = new Set(['if', 'propertyNames'])

/** Keywords whose errors explain those before them, which contradict each other when they are read alone. */
const WHOLES: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'contains'])

/** How many errors are read, so that a value with many problems costs no more than one with few. */
const MAX_READ = 500

/** Puts the error of a whole `anyOf` before those of its alternatives. */
function wholesFirst(errors: readonly ErrorObject[]): ErrorObject[] {
  const sorted: ErrorObject[] = []
  for (const error of errors) {
    let at = sorted.length
    if (WHOLES.has(error.keyword)) while (isWithin(sorted[at - 1], error.instancePath)) at--
    sorted.splice(at, 0, error)
  }
  return sorted
}

const isWithin = (error: ErrorObject | undefined, path: string): boolean =>
  error !== undefined && (error.instancePath === path || error.instancePath.startsWith(`${path}/`))

function describe(error: ErrorObject): SchemaProblem {
  const { member, message } = (DESCRIPTIONS[error.keyword] ?? describeOther)(error)
  const { instancePath, propertyName } = error
  const isName = propertyName !== undefined
  const names = [isName ? propertyName : undefined, member].filter((name) => name !== undefined)
  const path = names.reduce((before, name) => `${before}/${escapePointer(name)}`, instancePath)
  return {
    path: truncate(path, MAX_CHARS),
    message: truncate(isName ? `has a name that is not allowed: it ${message}` : message, MAX_CHARS),
  }
}

/** `member`: the property of the wrong object that the message is about. */
type Description = { message: string; member?: string }

const describeOther = ({ message = 'does not fit its schema' }: ErrorObject): Description => ({ message })

const limit = (words: (limit: number, data: unknown) => string) => (error: ErrorObject) => ({
  message: words(Number(error.params['limit']), error.data),
})

const DESCRIPTIONS: Record<string, (error: ErrorObject) => Description> = {
  type: ({ params, data }) => ({
    message: `must be ${typesOf(params['type'])}, not ${describeValue(data, params['type'])}`,
  }),
  required: ({ params }) => ({ member: String(params['missingProperty']), message: 'is missing' }),
  dependentRequired: missingBeside,
  dependencies: missingBeside,
  enum: ({ params }) => ({ message: `must be one of ${listOf(params['allowedValues'] as unknown[], JSON.stringify)}` }),
  const: ({ params }) => ({ message: `must be ${JSON.stringify(params['allowedValue'])}` }),
  additionalProperties: (error) => notAllowed(error, error.params['additionalProperty']),
  unevaluatedProperties: (error) => notAllowed(error, error.params['unevaluatedProperty']),
  minimum: limit((least, data) => `must be at least ${least}, not ${String(data)}`),
  maximum: limit((most, data) => `must be at most ${most}, not ${String(data)}`),
  exclusiveMinimum: limit((least, data) => `must be greater than ${least}, not ${String(data)}`),
  exclusiveMaximum: limit((most, data) => `must be less than ${most}, not ${String(data)}`),
  multipleOf: ({ params, data }) => ({ message: `must be a multiple of ${params['multipleOf']}, not ${String(data)}` }),
  minLength: limit((least) => `must have at least ${amount(least, 'character')}`),
  maxLength: limit((most) => `must have at most ${amount(most, 'character')}`),
  pattern: ({ params }) => ({ message: `must match the pattern ${params['pattern']}` }),
  minItems: limit((least, data) => `must have at least ${amount(least, 'item')}, not ${lengthOf(data)}`),
  maxItems: limit((most, data) => `must have at most ${amount(most, 'item')}, not ${lengthOf(data)}`),
  items: limit((most) => `must have at most ${amount(most, 'item')}`),
  additionalItems: limit((most) => `must have at most ${amount(most, 'item')}`),
  unevaluatedItems: limit((most) => `must have at most ${amount(most, 'item')}`),
  minProperties: limit((least) => `must have at least ${amount(least, 'property')}`),
  maxProperties: limit((most) => `must have at most ${amount(most, 'property')}`),
  uniqueItems: ({ params }) => ({
    message: `must not repeat an item: items ${params['i']} and ${params['j']} are equal`,
  }),
  contains: ({ params }) => ({ message: contained(params) }),
  not: () => ({ message: 'must not fit the schema under "not"' }),
  anyOf: ({ schema }) => ({ message: `must fit one of the ${lengthOf(schema)} alternatives of "anyOf"` }),
  oneOf: ({ schema, params }) => ({ message: oneOf(lengthOf(schema), params['passingSchemas']) }),
  'false schema': () => ({ message: 'is not allowed' }),
}

function missingBeside({ params }: ErrorObject): Description {
  const message = `is missing: it is required beside ${JSON.stringify(params['property'])}`
  return { member: String(params['missingProperty']), message }
}

function notAllowed({ parentSchema }: ErrorObject, name: unknown): Description {
  const properties: unknown = parentSchema?.['properties']
  const known = isJsonObject(properties) ? Object.keys(properties) : []
  const advice = known.length > 0 ? `the known properties are ${listOf(known, String)}` : 'remove it'
  return { member: String(name), message: `is not allowed: ${advice}` }
}

function contained({ minContains, maxContains }: Record<string, unknown>): string {
  const most = maxContains === undefined ? '' : ` and at most ${Number(maxContains)}`
  return `must have at least ${amount(Number(minContains), 'item')}${most} of the schema under "contains"`
}

const oneOf = (count: number, passing: unknown): string =>
  Array.isArray(passing)
    ? `must fit exactly one of the ${count} alternatives of "oneOf", but fits those at ${passing.join(' and ')}`
    : `must fit one of the ${count} alternatives of "oneOf"`

const NAMES: Record<string, string> = {
  array: 'an array',
  boolean: 'a boolean',
  integer: 'an integer',
  null: 'null',
  number: 'a number',
  object: 'an object',
  string: 'a string',
}

const typesOf = (types: unknown): string =>
  [types]
    .flat()
    .map((type) => NAMES[String(type)] ?? String(type))
    .join(' or ')

function describeValue(data: unknown, wanted: unknown): string {
  if (typeof data === 'number' && [wanted].flat().includes('integer')) return String(data)
  if (data === null || data === undefined) return String(data)
  return NAMES[Array.isArray(data) ? 'array' : typeof data] ?? typeof data
}

function listOf<T>(values: readonly T[], text: (value: T) => string): string {
  const rest = values.length - MAX_LISTED
  return values.slice(0, MAX_LISTED).map(text).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}

const amount = (count: number, noun: string): string =>
  `${count} ${count === 1 ? noun : noun.replace(/y$/, 'ie').concat('s')}`

const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : 0)
