import type { Answer } from '../harness/answer.ts'
import { problemsOf } from '../harness/judge.ts'
import { type Case, isHead, meets, type Want } from './case.ts'
import type { Connection } from './connection.ts'
import type { Victims } from './draft.ts'
import { type Generated, make, type Recipe, tell } from './generate.ts'

/** Bytes for the server, and what may come of them. */
export type Shot = {
  name: string
  bytes: Buffer
  isHead: boolean
  /** Nothing follows on its connection, and nothing has come before. */
  isLone: boolean
  /** The client closes its half behind the bytes. */
  isLast: boolean
  /** The answers, in order; without them any will do that breaks no promise. */
  wants?: readonly Want[]
  mayHaveMore?: boolean
  quietMs?: number
  headers?: Record<string, RegExp>
}

/** There are few of these: they may take a little longer. */
const QUIET_MS = 150

export function shotOfCase([name, bytes, want, { isLast = false, ...more } = {}]: Case): Shot {
  return { name, bytes, isHead: isHead(bytes), isLone: true, isLast, wants: [want].flat(), quietMs: QUIET_MS, ...more }
}

export function shotOfRecipe(recipe: Recipe, victims: Victims): Shot {
  const { bytes, isHead: isHeadOnly, isFramed }: Generated = make(recipe, victims)
  return { name: tell(recipe), bytes, isHead: isHeadOnly, isLone: !isFramed, isLast: !isFramed }
}

/** How many answers to bytes of unknown sense are looked at. */
const MAX_ANSWERS = 3

export type Fired = { answers: Answer[]; problems: string[] }

export async function fire(shot: Shot, connection: Connection): Promise<Fired> {
  const count = shot.wants ? shot.wants.length + (shot.mayHaveMore ? 1 : 0) : shot.isLone ? MAX_ANSWERS : 1
  const answers = await connection.ask({ ...shot, count })
  const problems = [
    ...answers.flatMap(problemsOf),
    ...answers.flatMap(problemsOfStream),
    ...problemsOfWants(shot, answers),
  ]
  if (answers.length === 0 && (!shot.isLone || !connection.isClosed))
    problems.push('no answer, and the connection stays')
  return { answers, problems: [...new Set(problems)] }
}

function problemsOfWants({ wants, mayHaveMore, headers = {} }: Shot, all: readonly Answer[]): string[] {
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

const TERMINAL = new Set(['done', 'error', 'plan_queued'])

/** A stream that has ended has told how (design §7, 1). One that was taken up behind its end has nothing to tell. */
function problemsOfStream({ headers, body, isWhole }: Answer): string[] {
  if (headers.get('content-type') !== 'text/event-stream' || !isWhole) return []
  if (body.includes('"code":"internal"')) return ['a stream that ends with a bug']
  const last = [...body.toString('latin1').matchAll(/^event: (.*)$/gm)].at(-1)?.[1]
  return last === undefined || TERMINAL.has(last) ? [] : [`a stream that ends with ${last}`]
}
