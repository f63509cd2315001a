import { graphOf } from './graph.ts'
import type { PlanEvent, PlanRecord, StepState } from './port.ts'

/**
 * The events of a plan, made from its record. The start of a step comes after the ends of its dependencies, even if the executors' clocks
 * differ. A repeated step has a start for each attempt, so that the events keep their numbers.
 */
export function eventsOf(plan: PlanRecord): PlanEvent[] {
  const dependencies = new Map(plan.steps.map(({ id, depends_on: after = [] }) => [id, after]))
  const placed: { place: string; event: PlanEvent }[] = []
  const ends = new Map<string, string>()
  const done = new Set(plan.states.filter(({ status }) => status === 'done').map(({ id }) => id))
  for (const state of inWaves(plan)) {
    // A skipped step does not wait for dependencies that were still running.
    const causes = (dependencies.get(state.id) ?? []).filter((id) => !isSkipped(state) || !done.has(id))
    const after = causes.map((id) => ends.get(id) ?? '')
    const start = latest([...after, state.started_at ?? ''])
    const end = latest([start, state.ended_at ?? ''])
    ends.set(state.id, end)
    if (state.taken_from !== undefined) continue // These events belong to the plan that has carried out the step.
    for (const at of state.earlier_starts ?? [])
      placed.push({ place: latest([...after, at]), event: stepStarted(plan, { ...state, started_at: at }) })
    if (state.started_at !== null) placed.push({ place: start, event: stepStarted(plan, state) })
    if (state.ended_at !== null) placed.push({ place: end, event: stepEnded(plan, state) })
  }
  placed.sort((a, b) => compare(a.place, b.place))
  const events = placed.map(({ event }) => event)
  return [...(plan.started_at === null ? [] : [planStarted(plan)]), ...events, ...planEnded(plan)]
}

/** The events of the change from one record of a running plan to a later one. */
export function eventsBetween(before: PlanRecord, after: PlanRecord): PlanEvent[] {
  const earlier = new Map(before.states.map((state) => [state.id, state]))
  const changed = after.states.filter(({ id, status }) => earlier.get(id)?.status !== status)
  const ended = changed.filter(({ ended_at }) => ended_at !== null)
  const [skipped, others] = [ended.filter(isSkipped), ended.filter((state) => !isSkipped(state))]
  return [
    ...[...others, ...skipped].map((state) => stepEnded(after, state)),
    ...changed.filter(({ status }) => status === 'running').map((state) => stepStarted(after, state)),
    ...planEnded(after),
  ]
}

const isSkipped = ({ status }: StepState): boolean => status === 'skipped'

function inWaves({ steps, states }: PlanRecord): StepState[] {
  const { waveOf } = graphOf(steps)
  return states.toSorted((a, b) => (waveOf.get(a.id) ?? 0) - (waveOf.get(b.id) ?? 0))
}

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

const latest = (times: readonly string[]): string => times.reduce((late, time) => (time > late ? time : late), '')

const planStarted = ({ plan_id, started_at, created_at }: PlanRecord): PlanEvent => ({
  type: 'plan_started',
  plan_id,
  at: started_at ?? created_at,
})

const stepStarted = ({ plan_id, created_at }: PlanRecord, { id, started_at }: StepState): PlanEvent => ({
  type: 'step_started',
  plan_id,
  step_id: id,
  at: started_at ?? created_at,
})

const stepEnded = ({ plan_id, created_at }: PlanRecord, { id, status, error, ended_at }: StepState): PlanEvent => ({
  type: 'step_ended',
  plan_id,
  step_id: id,
  status,
  ...(error !== null && { error }),
  at: ended_at ?? created_at,
})

function planEnded({ plan_id, status, error, ended_at }: PlanRecord): PlanEvent[] {
  if (ended_at === null) return []
  return [{ type: 'plan_ended', plan_id, status, ...(error !== null && { error }), at: ended_at }]
}
