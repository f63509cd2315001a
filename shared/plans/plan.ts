import { posix } from 'node:path'
import type { Plan, PlanStep } from '../tools/port.ts'

const MAX_STEPS = 200

/** Checks a plan's steps (D7.2). Returns the first problem, in words for the plan's author; `undefined` for a valid plan. */
export function planProblem({ steps, parallel = false }: Plan): string | undefined {
  if (steps.length > MAX_STEPS) return `A plan has at most ${MAX_STEPS} steps, not ${steps.length}.`
  const ids = new Set<string>()
  for (const { id } of steps) {
    if (ids.has(id)) return `Two steps have the id ${id}: give each its own.`
    ids.add(id)
  }
  for (const { id, depends_on: after = [] } of steps) {
    const unknown = after.find((other) => !ids.has(other))
    if (unknown !== undefined) return `Step ${id} depends on ${unknown}, which is no step of the plan.`
  }
  const { waves, stuck } = wavesOf(steps)
  if (stuck.length > 0) return `These steps wait for each other in a circle: ${stuck.map(({ id }) => id).join(', ')}.`
  return parallel ? clashOf(waves) : undefined
}

/**
 * Sorts steps into waves: each step comes in the first wave after all its dependencies. Steps in a circle of dependencies, and
 * the steps behind it, are `stuck`.
 */
export function wavesOf(steps: readonly PlanStep[]): { waves: PlanStep[][]; stuck: PlanStep[] } {
  const done = new Set<string>()
  const waves: PlanStep[][] = []
  let remaining = [...steps]
  while (remaining.length > 0) {
    const ready = remaining.filter(({ depends_on: after = [] }) => after.every((id) => done.has(id)))
    if (ready.length === 0) break
    waves.push(ready)
    for (const { id } of ready) done.add(id)
    remaining = remaining.filter(({ id }) => !done.has(id))
  }
  return { waves, stuck: remaining }
}

/** Finds two steps of one wave that write the same file (api.md "Plan step"). */
function clashOf(waves: readonly PlanStep[][]): string | undefined {
  for (const wave of waves) {
    const writers = new Map<string, string>()
    for (const { id, writes = [] } of wave) {
      for (const path of new Set(writes.map((written) => posix.normalize(written)))) {
        const other = writers.get(path)
        if (other !== undefined)
          return `Steps ${other} and ${id} may run at the same time and both write ${path}: make one depend on the other.`
        writers.set(path, id)
      }
    }
  }
  return undefined
}
