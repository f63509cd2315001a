import type { PlanStep } from '../../../../shared/kernel/plan-step.ts'
import type { PlanView } from '../../../../shared/work/plans/view.ts'
import { allOf, type Guarantee, noneOf, slowest } from '../../../harness/guarantee.ts'
import type { Fault } from '../fault.ts'
import { tokenOf } from './form.ts'
import type { PlanLoad, SeenPlan } from './load.ts'
import type { StepModel } from './model.ts'

/** Longer than a lease, and longer than a loaded machine has stalled a process. */
const LONGEST_STALL_MS = 15_000

/**
 * An executor that was evicted while no freeze explains it was stalled by the machine: its plans were taken over, as after a freeze. `at` is
 * when it noticed.
 */
export function stallsBefore(at: number, faults: readonly Fault[]): Fault[] {
  const isFrozen = faults.some(({ from, until }) => until > from && at >= from && at <= until + LONGEST_STALL_MS)
  return isFrozen ? [] : [{ from: at - LONGEST_STALL_MS, until: at }]
}

/** The observations of a load and of its model. */
export type PlanEvidence = {
  load: Pick<PlanLoad, 'plans' | 'refusals'>
  model: Pick<StepModel, 'startsOf' | 'answersOf' | 'writesOf' | 'refusedTools'>
  faults: readonly Fault[]
}

const ENDED_WITHIN_MS = 30_000
const LOST = 'executor lost, may have run'
const DIED_TWICE = /^its executors died twice/
/** An executor that continues after a freeze may still notice that it was replaced. */
const NOTICED_MS = 1_000

/** The promises for plans whose executors die (P7). `points` is how many steps must have been cut off for the result to mean something. */
export function planGuarantees(evidence: PlanEvidence, points: number): Guarantee[] {
  const { load, model, faults } = evidence
  const { plans, refusals } = load
  const open = plans.filter(({ view }) => !view || view.ended_at === null)
  const starts = plans.flatMap((plan) => tooManyStarts(plan, evidence))
  return [
    allOf('steps cut off at random points', cutSteps(evidence), points),
    noneOf('steps that were executed too often', starts),
    noneOf(
      'tool calls that were made twice',
      plans.flatMap((plan) => repeatedWrites(plan, evidence)),
    ),
    noneOf('tool calls that were refused', model.refusedTools),
    noneOf(
      `plans of ${plans.length} that did not end`,
      open.map(({ name, view }) => `${name}: ${view?.status} ${view?.id}`),
    ),
    slowest('from a fault to the end of the plans that it hit', timesAfterFaults(evidence), ENDED_WITHIN_MS),
    noneOf(
      'plans whose end is not consistent',
      plans.flatMap((plan) => inconsistencies(plan, evidence)),
    ),
    noneOf(
      'plans that failed although nothing had happened to them',
      plans.filter((plan) => plan.view?.status === 'failed' && faultsIn(plan, faults).length === 0).map(describe),
    ),
    noneOf(
      'steps that began before a step that they depend on was done',
      plans.flatMap((plan) => early(plan, evidence)),
    ),
    noneOf(
      'states that changed after their end',
      plans.flatMap(({ problems }) => problems),
    ),
    noneOf('submits that a running gateway refused', refusals),
  ]
}

const describe = ({ name, view }: SeenPlan): string =>
  `${name} ${view?.id}: ${view?.status} ${view?.error ?? ''} ${JSON.stringify(view?.step_statuses)}`

/** The steps that a fault has cut off in the middle: they have failed, or were executed again. */
export const cutSteps = ({ load, model }: Pick<PlanEvidence, 'load' | 'model'>): number =>
  load.plans.reduce((sum, seen) => sum + countCut(seen, model), 0)

const countCut = ({ name, plan, view }: SeenPlan, model: Pick<StepModel, 'startsOf'>): number =>
  plan.steps.filter(({ id }) => view?.step_errors?.[id] === LOST || model.startsOf(tokenOf(name, id)).length > 1).length

/**
 * A step is executed at most once, and once more for each fault if it is idempotent or has called no tool that changes something, but not a third
 * time (D7.3).
 */
function tooManyStarts(seen: SeenPlan, { model, faults }: PlanEvidence): string[] {
  return seen.plan.steps.flatMap(({ id, idempotent = false }) => {
    const token = tokenOf(seen.name, id)
    const starts = model.startsOf(token)
    const count = starts.length
    const [written = Infinity] = idempotent ? [] : model.writesOf(token)
    const isRepeated = starts.some((at) => at > written && !isBelated(at, faults))
    const allowed = isRepeated ? 1 : Math.min(2, 1 + faultsIn(seen, faults).length)
    if (count <= allowed) return []
    const after = (times: readonly number[]) => times.map((at) => `${at - seen.from} ms`).join(', ')
    const when = `${after(starts)}; wrote at ${after(model.writesOf(token))}; faults from ${after(faults.map(({ from }) => from))}`
    return [`${describe(seen)}: ${id} ran ${count} times instead of ${allowed}, at ${when}`]
  })
}

/**
 * A frozen executor that was about to send its prompt sends it when it continues, shortly before it notices that it was replaced. This changes
 * nothing: its tools are refused.
 */
const isBelated = (at: number, faults: readonly Fault[]): boolean =>
  faults.some(({ from, until }) => until > from && Math.abs(at - until) <= NOTICED_MS)

/** An execution calls its tool once, and goes on only if it may still act. */
function repeatedWrites(seen: SeenPlan, { model }: PlanEvidence): string[] {
  return seen.plan.steps.flatMap(({ id, idempotent = false }) => {
    const token = tokenOf(seen.name, id)
    const allowed = idempotent ? model.startsOf(token).length : 1
    const writes = model.writesOf(token).length
    return writes > allowed ? [`${describe(seen)}: ${id} wrote ${writes} times`] : []
  })
}

/** The faults in the life of a plan. */
function faultsIn({ from: created, to: ended = Infinity }: SeenPlan, faults: readonly Fault[]): Fault[] {
  return faults.filter(({ from, until }) => until + NOTICED_MS >= created && from <= ended)
}

/** For each plan that a fault has hit: the time from the beginning of the last fault in its life to its end. */
function timesAfterFaults({ load, model, faults }: PlanEvidence): number[] {
  return load.plans.flatMap((seen) => {
    const { view, to } = seen
    const last = faultsIn(seen, faults).at(-1)
    if (!last || !view || to === undefined) return []
    const isHit = view.status === 'failed' || countCut(seen, model) > 0
    return isHit ? [to - last.from] : []
  })
}

/** An end must explain itself: each step has ended, and has its output, its error, or stands behind a failed step. */
function inconsistencies(seen: SeenPlan, evidence: PlanEvidence): string[] {
  const { plan, view } = seen
  if (!view || view.ended_at === null) return []
  const steps = plan.steps.map((step) => stepProblem(step, { seen, view, evidence }))
  return [endProblem(view), ...steps].flatMap((what) => (what ? [`${describe(seen)}: ${what}`] : []))
}

type Ended = { seen: SeenPlan; view: PlanView; evidence: PlanEvidence }

function stepProblem({ id, depends_on: after = [] }: PlanStep, { seen, view, evidence }: Ended): string | undefined {
  const statuses = after.map((each) => view.step_statuses[each])
  const [status, token, error] = [view.step_statuses[id], tokenOf(seen.name, id), view.step_errors?.[id]]
  if (status === 'done') {
    if (view.step_outputs?.[id] !== token) return `${id} has the output ${view.step_outputs?.[id]}`
    if (evidence.model.answersOf(token).length === 0) return `${id} is done, but never ran`
    return statuses.every((each) => each === 'done') ? undefined : `${id} is done before its dependencies`
  }
  if (status === 'failed') return error === LOST ? undefined : `${id} failed: ${error}`
  if (status !== 'skipped') return `${id} is ${status} at the end`
  const isBehind = statuses.some((each) => each === 'failed' || each === 'skipped')
  // A plan whose executors died twice skips all that it has not begun, and keeps an earlier error.
  const mayBeGivenUp = faultsIn(seen, evidence.faults).length > 1
  return isBehind || mayBeGivenUp ? undefined : `${id} was skipped, but nothing before it has failed`
}

function endProblem(view: PlanView): string | undefined {
  const failed = Object.keys(view.step_errors ?? {}).length
  if (view.status === 'done') return failed === 0 && !view.error ? undefined : 'it is done with an error'
  if (view.status !== 'failed') return `it is ${view.status}`
  return view.error === LOST || DIED_TWICE.test(view.error ?? '') ? undefined : `its error is ${view.error}`
}

function early({ name, plan }: SeenPlan, { model }: PlanEvidence): string[] {
  return plan.steps.flatMap(({ id, depends_on: after = [] }) => {
    const [began] = model.startsOf(tokenOf(name, id))
    if (began === undefined) return []
    const late = after.filter((each) => !((model.answersOf(tokenOf(name, each))[0] ?? Infinity) <= began))
    return late.map((each) => `${name}: ${id} began before ${each} was done`)
  })
}

/** One line for the progress output. */
export function tallyPlans(load: Pick<PlanLoad, 'plans'>): string {
  const counts = Map.groupBy(load.plans, ({ view }) => view?.status ?? 'not submitted')
  return [...counts].map(([status, { length }]) => `${length} x ${status}`).join(', ')
}
