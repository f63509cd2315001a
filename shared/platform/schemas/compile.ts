import { Ajv, type FuncKeywordDefinition, type Options, type SchemaValidateFunction, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { JsonObject } from '../../kernel/events.ts'
import { escapePointer } from '../../kernel/json.ts'
import { draftOf } from './keywords.ts'
import { compilePattern, PatternError } from './patterns.ts'
import type { SchemaProblem } from './port.ts'
import { describeErrors } from './problems.ts'

/** Thrown for a schema that cannot be compiled. */
export class UnusableSchema extends Error {
  readonly problem: SchemaProblem

  constructor(problem: SchemaProblem, cause: unknown) {
    super(`the schema ${problem.path} ${problem.message}`, { cause })
    this.name = 'UnusableSchema'
    this.problem = problem
  }
}

/** Returns at most ten problems of a value, the first ones; empty when it is valid. */
export type Validate = (value: unknown) => SchemaProblem[]

const OPTIONS: Options = {
  strict: false,
  meta: false, // The schema's structure was already checked (`budget.ts`), and compiling a meta-schema takes 30 ms.
  validateSchema: false,
  validateFormats: false, // `format` is an annotation in draft 2020-12, and the expressions of ajv-formats are not linear.
  allErrors: true,
  verbose: true,
  ownProperties: true,
  multipleOfPrecision: 9, // 0.3 is a multiple of 0.1.
  inlineRefs: false, // The code would grow with each reference.
  logger: false,
  code: { optimize: false, regExp: Object.assign(compilePattern, { code: 'compilePattern' }) },
}

/**
 * Compiles a schema of draft 2020-12 or draft-07; formats are ignored. Compiling and validating block the thread: call it
 * for untrusted schemas only in `schema-worker.ts`. Throws `UnusableSchema`.
 */
export function compileSchema(schema: JsonObject): Validate {
  const validate = compile(schema)
  return (value) => {
    try {
      return validate(value) ? [] : describeErrors(validate.errors ?? [])
    } catch (cause) {
      return [{ path: '', message: `cannot be checked: ${reasonOf(cause)}` }]
    }
  }
}

function reasonOf(cause: unknown): string {
  if (cause instanceof PatternError) return cause.message
  if (cause instanceof RangeError) return 'it is nested too deeply'
  // The code that ajv makes fails for some combinations of unevaluatedProperties and patternProperties.
  return 'its schema combines keywords that do not work together; use additionalProperties instead of unevaluatedProperties'
}

function compile(document: JsonObject): ValidateFunction {
  const { $schema, ...schema } = document
  // Each schema has its own compiler, so that it does not see another schema's ids, and none stays in memory.
  const ajv = draftOf($schema) === '07' ? new Ajv(OPTIONS) : new Ajv2020(OPTIONS)
  // Ajv2020 always sets this, which makes the generated code larger, and wrong for some schemas with patternProperties.
  ajv.opts.unevaluated = JSON.stringify(schema).includes('"unevaluated')
  ajv.opts.dynamicRef = false
  ajv.removeKeyword('uniqueItems').addKeyword(UNIQUE_ITEMS)
  ajv.removeKeyword('id') // Has a meaning in draft-04 only; ajv refuses it.
  delete schema['$id']
  try {
    return ajv.compile(schema)
  } catch (cause) {
    throw new UnusableSchema(problemOf(cause, schema), cause)
  }
}

function problemOf(cause: unknown, schema: JsonObject): SchemaProblem {
  if (cause instanceof PatternError) {
    return { path: findPattern(schema, cause.pattern, '') ?? '', message: cause.message }
  }
  if (cause instanceof RangeError) return { path: '', message: 'is nested too deeply: simplify it' }
  return { path: '', message: 'cannot be compiled: check its keywords against the JSON Schema specification' }
}

/** The JSON pointer of the first place with this pattern. The budget bounds the depth. */
function findPattern(value: unknown, pattern: string, path: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const place = `${path}/${escapePointer(key)}`
    if ((key === 'pattern' && inner === pattern) || (key === pattern && path.endsWith('/patternProperties')))
      return place
    const found = findPattern(inner, pattern, place)
    if (found !== undefined) return found
  }
  return undefined
}

/** Replaces ajv's `uniqueItems`, which compares each item with every other one. This one takes time linear in the array's size. */
const UNIQUE_ITEMS: FuncKeywordDefinition = {
  keyword: 'uniqueItems',
  type: 'array',
  schemaType: 'boolean',
  errors: true,
  compile(isUnique: boolean) {
    const check: SchemaValidateFunction = (items: readonly unknown[]) => {
      const pair = isUnique ? findEqualItems(items) : undefined
      check.errors = pair ? [{ keyword: 'uniqueItems', params: pair }] : []
      return !pair
    }
    return check
  },
}

/** The indices of an item and of an earlier one that is equal to it. */
function findEqualItems(items: readonly unknown[]): { i: number; j: number } | undefined {
  const seen = new Map<string, number>()
  for (const [at, item] of items.entries()) {
    const text = canonicalJson(item)
    const earlier = seen.get(text)
    if (earlier !== undefined) return { i: earlier, j: at }
    seen.set(text, at)
  }
  return undefined
}

/** JSON with sorted keys: two values have the same text when they are equal. */
function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([key, inner]) => `${JSON.stringify(key)}:${canonicalJson(inner)}`).join()}}`
}
