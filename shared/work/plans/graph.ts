import type { PlanStep } from '../../kernel/plan-step.ts'

/** `waveOf` gives the number of a step's wave, from 0; `dependents` the steps that name a step in `depends_on`. */
export type StepGraph = {
  waveOf: ReadonlyMap<string, number>
  dependents: ReadonlyMap<string, readonly string[]>
}

const graphs = new WeakMap<readonly PlanStep[], StepGraph>()

/** The graph of a valid plan. It is computed once for each array of steps, since the steps of a plan never change. */
export function graphOf(steps: readonly PlanStep[]): StepGraph {
  const known = graphs.get(steps)
  if (known) return known
  const { waves } = wavesOf(steps)
  const waveOf = new Map(waves.flatMap((wave, n) => wave.map(({ id }) => [id, n] as const)))
  const graph = { waveOf, dependents: dependentsOf(steps) }
  graphs.set(steps, graph)
  return graph
}

/**
 * Sorts steps into waves: each step is in the first wave after all its dependencies. Steps in a circle of dependencies, and
 * steps that depend on them, are `stuck`. Dependencies on unknown steps are ignored.
 */
export function wavesOf(steps: readonly PlanStep[]): { waves: PlanStep[][]; stuck: PlanStep[] } {
  const dependents = dependentsOf(steps)
  const missing = new Map(
    steps.map(({ id, depends_on: after = [] }) => [id, new Set(after.filter((other) => dependents.has(other))).size]),
  )
  const waves: PlanStep[][] = []
  let wave = steps.filter(({ id }) => missing.get(id) === 0)
  while (wave.length > 0) {
    waves.push(wave)
    const ready = new Set<string>()
    for (const id of wave.flatMap((step) => dependents.get(step.id) ?? [])) {
      const left = (missing.get(id) ?? 0) - 1
      missing.set(id, left)
      if (left === 0) ready.add(id)
    }
    wave = steps.filter(({ id }) => ready.has(id))
  }
  return { waves, stuck: steps.filter(({ id }) => missing.get(id) !== 0) }
}

/** One circle of dependencies among stuck steps: each step depends on the next one, and the last one on the first. */
export function circleIn(stuck: readonly PlanStep[]): PlanStep[] {
  const byId = new Map(stuck.map((step) => [step.id, step]))
  const path: PlanStep[] = []
  let step = stuck[0]
  while (step && !path.includes(step)) {
    path.push(step)
    const next: string | undefined = step.depends_on?.find((id) => byId.has(id))
    step = next === undefined ? undefined : byId.get(next)
  }
  return step ? path.slice(path.indexOf(step)) : []
}

function dependentsOf(steps: readonly PlanStep[]): Map<string, string[]> {
  const dependents = new Map<string, string[]>(steps.map(({ id }) => [id, []]))
  for (const { id, depends_on: after = [] } of steps)
    for (const other of new Set(after)) dependents.get(other)?.push(id)
  return dependents
}
