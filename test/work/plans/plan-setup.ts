import fc from 'fast-check'
import type { PlanStep } from '../../../shared/kernel/plan-step.ts'
import type { PlanRecord, PlanTransition, StepStatus } from '../../../shared/work/plans/port.ts'
import { type By, beginNextSteps, type NewPlan, newPlan } from '../../../shared/work/plans/transitions.ts'

export const START = '2026-11-22T10:00:00.000Z'
export const at = (secs: number) => new Date(Date.parse(START) + 1_000 * secs).toISOString()
export const by = (executor: number, secs = 1) => ({ executor, at: at(secs) })

export const step = (id: string, ...after: string[]): PlanStep => ({
  id,
  prompt: `do ${id}`,
  ...(after.length > 0 && { depends_on: after }),
})

/** a -> b, c -> d */
export const DIAMOND = [step('a'), step('b', 'a'), step('c', 'a'), step('d', 'b', 'c')]

let plans = 0
const newPlanId = () => `plan_${(++plans).toString(16).padStart(32, '0')}`

export const record = (steps: PlanStep[], more: Partial<NewPlan> = {}): PlanRecord =>
  newPlan({ id: newPlanId(), subject: 'anna', steps, at: START, ...more })

/** Applies transitions that must all apply. */
export const after = (plan: PlanRecord, ...transitions: PlanTransition[]): PlanRecord =>
  transitions.reduce((now, transition, i) => {
    const next = transition(now)
    if (!next) throw new Error(`transition ${i} does not apply`)
    return next
  }, plan)

/** queued -> running, without a step. */
export const begin =
  ({ executor, at: time }: By): PlanTransition =>
  (plan) =>
    plan.status === 'queued'
      ? { ...plan, status: 'running', executor, starts: plan.starts + 1, started_at: plan.started_at ?? time }
      : undefined

/** queued -> running, together with the first steps. */
export const claim =
  (who: By): PlanTransition =>
  (plan) => {
    const begun = begin(who)(plan)
    return begun && beginNextSteps(who)(begun)
  }

export const statusesOf = ({ states }: PlanRecord): Record<string, StepStatus> =>
  Object.fromEntries(states.map(({ id, status }) => [id, status]))

export const errorsOf = ({ states }: PlanRecord): Record<string, string> =>
  Object.fromEntries(states.flatMap(({ id, error }) => (error === null ? [] : [[id, error]])))

/** Valid plans: every step depends on some of the steps before it, and the steps are in any order. */
export const anyPlan = (maxSteps: number) =>
  fc
    .record({
      graph: fc.array(fc.record({ after: fc.array(fc.nat(), { maxLength: 4 }), idempotent: fc.boolean() }), {
        minLength: 1,
        maxLength: maxSteps,
      }),
      parallel: fc.boolean(),
    })
    .map(({ graph, parallel }) => ({
      parallel,
      steps: graph.map(({ after: before, idempotent }, i): PlanStep => {
        const ids = i === 0 ? [] : before.map((n) => `s${n % i}`)
        return { ...step(`s${i}`, ...new Set(ids)), ...(idempotent && { idempotent }) }
      }),
    }))
    .chain(({ parallel, steps }) =>
      fc.shuffledSubarray(steps, { minLength: steps.length }).map((shuffled) => ({ parallel, steps: shuffled })),
    )
