import type { Answer } from '../harness/answer.ts'
import { problemsOf } from '../harness/answer-problems.ts'
import { type Case, isHead, meets, type Want } from './case.ts'
import type { Connection } from './connection.ts'
import type { Victims } from './draft.ts'
import { describeRecipe, type Generated, make, type Recipe } from './generate.ts'

/** Bytes to send and the expected answers. */
export type FuzzInput = {
  name: string
  bytes: Buffer
  isHead: boolean
  /** It has a connection to itself. */
  isLone: boolean
  /** The client half-closes the connection after the bytes. */
  isLast: boolean
  /** Expected answers in order. Without them every answer is right that keeps the rules for every answer. */
  wants?: readonly Want[]
  mayHaveMore?: boolean
  quietMs?: number
  headers?: Record<string, RegExp>
}

/** Longer than the default, since hand-written cases are few. */
const QUIET_MS = 150

export function inputOfCase([name, bytes, want, { isLast = false, ...more } = {}]: Case): FuzzInput {
  return { name, bytes, isHead: isHead(bytes), isLone: true, isLast, wants: [want].flat(), quietMs: QUIET_MS, ...more }
}

export function inputOfRecipe(recipe: Recipe, victims: Victims): FuzzInput {
  const { bytes, isHead: isHeadOnly, isFramed }: Generated = make(recipe, victims)
  return { name: describeRecipe(recipe), bytes, isHead: isHeadOnly, isLone: !isFramed, isLast: !isFramed }
}

/** Answers that are checked when the number of requests in the bytes is unknown. */
const MAX_ANSWERS = 3

export type Outcome = { answers: Answer[]; problems: string[] }

export async function send(input: FuzzInput, connection: Connection): Promise<Outcome> {
  const count = input.wants ? input.wants.length + (input.mayHaveMore ? 1 : 0) : input.isLone ? MAX_ANSWERS : 1
  const answers = await connection.ask({ ...input, count })
  const problems = [
    ...answers.flatMap(problemsOf),
    ...answers.flatMap(problemsOfStream),
    ...problemsOfWants(input, answers),
  ]
  if (answers.length === 0 && (!input.isLone || !connection.isClosed))
    problems.push('no answer, and the connection stays open')
  return { answers, problems: [...new Set(problems)] }
}

function problemsOfWants({ wants, mayHaveMore, headers = {} }: FuzzInput, all: readonly Answer[]): string[] {
  if (!wants) return []
  const answers = mayHaveMore ? all.slice(0, wants.length) : all
  const isRight = answers.length === wants.length && wants.every((want, i) => meets(answers[i]?.status ?? 0, want))
  const problems = isRight ? [] : [`${shown(answers.map(({ status }) => status))} instead of ${shown(wants)}`]
  for (const [name, pattern] of Object.entries(headers)) {
    const value = answers[0]?.headers.get(name) ?? ''
    if (!pattern.test(value)) problems.push(`${name}: ${JSON.stringify(value)}`)
  }
  return problems
}

function shown(statuses: readonly Want[]): string {
  if (statuses.length === 0) return 'nothing'
  return statuses.length > 5 ? `${statuses.length} answers, the last ${statuses.at(-1)}` : statuses.join(', ')
}

const TERMINAL = new Set(['done', 'error', 'plan_queued', 'result', 'plan_ended'])

/** A stream must end with a terminal event, unless it was resumed after that event and is empty. */
function problemsOfStream({ headers, body, isWhole }: Answer): string[] {
  if (headers.get('content-type') !== 'text/event-stream' || !isWhole) return []
  if (body.includes('"code":"internal"')) return ['a stream that ends with an internal error']
  const last = [...body.toString('latin1').matchAll(/^event: (.*)$/gm)].at(-1)?.[1]
  return last === undefined || TERMINAL.has(last) ? [] : [`a stream that ends with ${last}`]
}
