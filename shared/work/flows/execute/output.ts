import type { JsonObject, OutputProblem } from '../../../kernel/events.ts'
import { fitsDepth } from '../../../kernel/json.ts'
import { truncate } from '../../../kernel/text.ts'
import type { SchemaChecker, SchemaProblem } from '../../../platform/schemas/port.ts'

/** A longer answer is no valid output. */
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

/** The parser's message quotes the model's own text only. */
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

/** Removes the name of the language behind the opening fence. */
const withoutLabel = (content: string): string => content.replace(/^[A-Za-z]\w*/, '')

const MAX_PROBLEMS = 10
const MAX_PATH_CHARS = 200
const MAX_MESSAGE_CHARS = 300

/** The problems as callers see them. A message may quote a long text of the model or of the schema. */
export const shownProblems = (problems: readonly SchemaProblem[]): OutputProblem[] =>
  problems.slice(0, MAX_PROBLEMS).map(({ path, message }) => ({
    path: truncate(path, MAX_PATH_CHARS),
    message: truncate(message, MAX_MESSAGE_CHARS),
  }))

export type CheckedOutput = { value: unknown } | { problems: readonly SchemaProblem[] }

/** Reads an answer and checks it against the schema. The problems are those of the text, or those of the value. */
export async function checkOutput(
  answer: string,
  schema: JsonObject,
  checker: Pick<SchemaChecker, 'check'>,
): Promise<CheckedOutput> {
  const parsed = parseOutput(answer)
  if ('problem' in parsed) return { problems: [{ path: '', message: parsed.problem }] }
  const problems = await checker.check(schema, parsed.value)
  return problems.length > 0 ? { problems } : parsed
}

/** The message that asks an agent to correct its answer. */
export const correctionPrompt = (problems: readonly SchemaProblem[]): string =>
  [
    'Your answer is not a valid output:',
    ...problems.map(({ path, message }) => `- ${path || 'the answer'} ${message}`),
    'Answer again with the whole corrected JSON, and with nothing else.',
  ].join('\n')
