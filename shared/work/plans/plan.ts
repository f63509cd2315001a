import { posix, win32 } from 'node:path'
import type { Plan, PlanStep } from '../../kernel/plan-step.ts'
import { truncate } from '../../kernel/text.ts'
import { circleIn, wavesOf } from './graph.ts'

/** `path` is the JSON pointer of the wrong value in the plan; `message` is for the plan's author. */
export type PlanProblem = { path: string; message: string }

const MAX_STEPS = 200
const MAX_ID_CHARS = 128
const PLAIN_NAME = /^[\w./-]+$/

/** Checks a plan's steps (D7.2). Returns the first problem; `undefined` for a valid plan. */
export function planProblem(plan: Plan): PlanProblem | undefined {
  const [first] = planProblems(plan)
  return first
}

/** Finds the problems of a plan's steps one by one (D7.2): only the first of several circles, since one circle hides the next. */
export function* planProblems({ steps, parallel = false }: Plan): Generator<PlanProblem, void, undefined> {
  yield* countProblems(steps)
  yield* idProblems(steps)
  yield* dependencyProblems(steps)
  yield* circleProblems(steps)
  if (parallel) yield* writesProblems(steps)
}

/**
 * The problem of a plan that a model proposes, in words for the model. A plan without steps has no problem: nothing
 * will be queued (api.md "plan_queued").
 */
export const proposalProblem = (plan: Plan): string | undefined =>
  plan.steps.length === 0 ? undefined : planProblem(plan)?.message

type Problems = Generator<PlanProblem, void, undefined>

function* countProblems({ length }: readonly PlanStep[]): Problems {
  if (length === 0) yield { path: '/steps', message: 'The plan has no steps: give it at least one.' }
  if (length <= MAX_STEPS) return
  const message = `A plan has at most ${MAX_STEPS} steps, not ${length}: join some, or make several plans.`
  yield { path: '/steps', message }
}

function* idProblems(steps: readonly PlanStep[]): Problems {
  const ids = new Set<string>()
  for (const [i, { id }] of steps.entries()) {
    const message = idProblem(id, { at: i + 1, ids })
    if (message !== undefined) yield { path: `/steps/${i}/id`, message }
    ids.add(id)
  }
}

function idProblem(id: string, { at, ids }: { at: number; ids: ReadonlySet<string> }): string | undefined {
  if (id === '') return `Step ${at} has no id: give it one.`
  if (id.length > MAX_ID_CHARS) return `The id of step ${at} is longer than ${MAX_ID_CHARS} characters: shorten it.`
  if (id.includes('\0') || !id.isWellFormed())
    return `The id of step ${at} holds an invalid character: use valid Unicode without NUL.`
  return ids.has(id) ? `Two steps have the id ${nameOf(id)}: give each its own.` : undefined
}

function* dependencyProblems(steps: readonly PlanStep[]): Problems {
  const ids = new Set(steps.map(({ id }) => id))
  for (const [i, { id, depends_on: after = [] }] of steps.entries()) {
    for (const [j, other] of after.entries()) {
      const path = `/steps/${i}/depends_on/${j}`
      if (other === id) yield { path, message: `Step ${nameOf(id)} depends on itself: remove that dependency.` }
      if (ids.has(other)) continue
      const message = `Step ${nameOf(id)} depends on ${nameOf(other)}, which is no step of the plan: add that step, or remove the dependency.`
      yield { path, message }
    }
  }
}

function* circleProblems(steps: readonly PlanStep[]): Problems {
  const [first, ...others] = circleIn(wavesOf(steps).stuck)
  if (!first || others.length === 0) return // A step that depends on itself is reported as such.
  const circle = shownCircle([first, ...others, first]).join(' -> ')
  yield {
    path: `/steps/${steps.indexOf(first)}/depends_on`,
    message: `These steps wait for each other in a circle: ${circle}. Remove one of these dependencies.`,
  }
}

const MAX_SHOWN_STEPS = 6

/** The ids of the steps; if there are many, the first ones and the last. */
function shownCircle(steps: readonly PlanStep[]): string[] {
  const names = steps.map(({ id }) => nameOf(id))
  if (names.length <= MAX_SHOWN_STEPS) return names
  const left = names.length - MAX_SHOWN_STEPS
  return [...names.slice(0, MAX_SHOWN_STEPS - 1), `${left} more`, ...names.slice(-1)]
}

/** Finds a path outside the workspace, and two steps of one wave that write the same file (api.md "Plan step"). */
function* writesProblems(steps: readonly PlanStep[]): Problems {
  for (const wave of wavesOf(steps).waves) {
    const writers = new Map<string, string>()
    for (const step of wave) {
      for (const [j, written] of (step.writes ?? []).entries()) {
        const message = writeProblem(step.id, written, writers)
        if (message !== undefined) yield { path: `/steps/${steps.indexOf(step)}/writes/${j}`, message }
      }
    }
  }
}

/** Adds the path to `writers` (the wave's writers by normalized path), unless it has a problem. */
function writeProblem(id: string, written: string, writers: Map<string, string>): string | undefined {
  const path = workspacePath(written)
  if (path === undefined)
    return `Step ${nameOf(id)} writes ${nameOf(written)}, which is no file in the workspace: give a relative path that stays inside it.`
  const other = writers.get(path) ?? id
  writers.set(path, other)
  if (other === id) return undefined
  return `Steps ${nameOf(other)} and ${nameOf(id)} may run at the same time and both write ${nameOf(path)}: make one depend on the other.`
}

/** The one spelling of a path in the workspace; `undefined` for a path that leaves it or names no file. */
function workspacePath(written: string): string | undefined {
  if (written.includes('\0') || posix.isAbsolute(written) || win32.isAbsolute(written)) return undefined
  const path = posix.normalize(written).replace(/\/$/, '')
  return path === '.' || path === '..' || path.startsWith('../') ? undefined : path
}

/** Shortens an id or a path for a message. */
function nameOf(id: string): string {
  const short = truncate(id, MAX_ID_CHARS)
  return PLAIN_NAME.test(short) ? short : JSON.stringify(short)
}
