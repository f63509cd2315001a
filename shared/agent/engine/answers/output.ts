import type { JsonObject, OutputProblem, WarningEvent } from '../../../kernel/events.ts'
import { fitsDepth } from '../../../kernel/json.ts'
import { truncate } from '../../../kernel/text.ts'
import type { SchemaChecker, SchemaProblem } from '../../../platform/schemas/port.ts'
import { type Repair, type Repaired, repairedValues, withoutNulls } from './repair.ts'

/** A longer answer is not accepted as an output. */
export const MAX_OUTPUT_CHARS = 1_000_000
const MAX_DEPTH = 64
const FENCE = '```'

type Parsed = { value: unknown } | { problem: string }

/** Reads an agent's answer as JSON: the whole text, or the content of its one code fence. `problem` is the end of a sentence. */
export function parseOutput(answer: string): Parsed {
  const text = answer.trim()
  if (text === '') return { problem: 'is empty' }
  if (text.length > MAX_OUTPUT_CHARS) return { problem: `is longer than ${MAX_OUTPUT_CHARS} characters` }
  const whole = parse(text)
  const fenced = 'problem' in whole ? contentOfFence(text) : undefined
  const parsed = fenced === undefined ? whole : parse(fenced)
  if ('problem' in parsed || fitsDepth(parsed.value, MAX_DEPTH)) return parsed
  return { problem: `is nested deeper than ${MAX_DEPTH} levels` }
}

/** It is safe to show the parser's message: it quotes only the model's own text. */
function parse(text: string): Parsed {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (cause) {
    return { problem: `is not JSON: ${(cause as SyntaxError).message}` }
  }
}

/** JSON holds no line that begins with a fence, because its texts have no raw line breaks. */
function contentOfFence(text: string): string | undefined {
  const [before, content, after, ...more] = `\n${text}`.split(`\n${FENCE}`)
  if (content !== undefined && after !== undefined && more.length === 0) return withoutLabel(content)
  const isOneLine = before === '' && after === undefined && content?.endsWith(FENCE)
  return isOneLine ? withoutLabel(content?.slice(0, -FENCE.length) ?? '') : undefined
}

/** Removes the name of the language after the opening fence. */
const withoutLabel = (content: string): string => content.replace(/^[A-Za-z]\w*/, '')

const MAX_PROBLEMS = 10
const MAX_PATH_CHARS = 200
const MAX_MESSAGE_CHARS = 300

/** The problems in the form that callers see. Messages are shortened, because they may quote long texts of the model or the schema. */
export const shownProblems = (problems: readonly SchemaProblem[]): OutputProblem[] =>
  problems.slice(0, MAX_PROBLEMS).map(({ path, message }) => ({
    path: truncate(path, MAX_PATH_CHARS),
    message: truncate(message, MAX_MESSAGE_CHARS),
  }))

export type CheckedOutput = Repaired | { problems: readonly SchemaProblem[] }

/**
 * Reads an answer and checks it against the schema. If it does not fit, possible repairs are tried (`repairedValues`); one is taken if
 * exactly one fits.
 */
export async function checkOutput(
  answer: string,
  schema: JsonObject,
  checker: Pick<SchemaChecker, 'check'>,
): Promise<CheckedOutput> {
  const fits = (value: unknown) => fitOf(value, schema, checker)
  const parsed = parseOutput(answer)
  const whole = 'problem' in parsed ? { problems: [{ path: '', message: parsed.problem }] } : await fits(parsed.value)
  if ('value' in whole || answer.length > MAX_OUTPUT_CHARS) return whole
  const found = new Map<string, Repaired>()
  for (const { value, repairs } of repairedValues(answer)) {
    const isNew = repairs.length > 0 && fitsDepth(value, MAX_DEPTH)
    const fit = isNew ? await fits(value) : undefined
    if (!fit || !('value' in fit)) continue
    const key = JSON.stringify(fit.value)
    if (!found.has(key)) found.set(key, { value: fit.value, repairs: [...repairs, ...fit.repairs] })
  }
  const [only, another] = found.values()
  return only && !another ? only : whole
}

/** How often null properties are removed: the checker names ten problems at a time. */
const MAX_ROUNDS = 5

/** Checks the value against the schema. If it does not fit, optional properties that are null are removed. */
async function fitOf(
  given: unknown,
  schema: JsonObject,
  checker: Pick<SchemaChecker, 'check'>,
): Promise<CheckedOutput> {
  const problems = await checker.check(schema, given)
  let [value, left]: [unknown, readonly SchemaProblem[]] = [given, problems]
  for (let round = 0; left.length > 0; round++) {
    value = round < MAX_ROUNDS ? withoutNulls(value, left) : undefined
    if (value === undefined) return { problems }
    left = await checker.check(schema, value)
  }
  return { value, repairs: value === given ? [] : ['null_property'] }
}

/** The message that asks an agent to correct its answer. */
export const correctionPrompt = (problems: readonly SchemaProblem[]): string =>
  [
    'Your answer is not a valid output:',
    ...problems.map(({ path, message }) => `- ${path || 'the answer'} ${message}`),
    'Answer again with the whole corrected JSON, and with nothing else.',
  ].join('\n')

/** Names what was repaired, for the client and the record of the run; `undefined` when nothing was. */
export function repairWarning(repairs: readonly Repair[]): WarningEvent | undefined {
  if (repairs.length === 0) return undefined
  const message = `the answer was no plain JSON of the output_schema and was repaired: ${repairs.join(', ')}`
  return { type: 'warning', code: 'output_repaired', message, detail: { repairs } }
}
