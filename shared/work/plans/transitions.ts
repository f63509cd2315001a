import type { Plan } from '../../kernel/plan-step.ts'
import { HOUR_MS, isoTime } from '../../kernel/time.ts'
import type { PlanHead, PlanRecord, PlanTransition, Spent } from './port.ts'
import {
  areStepsOver,
  cutSteps,
  endSteps,
  failStep,
  hasRunningStep,
  isRunBy,
  isTooLate,
  limitOf,
  nextSteps,
  withSpent,
  withState,
} from './states.ts'

/**
 * The executor that makes a transition, by its epoch, and the time in ISO 8601. `recordsActions`: it records that a step changes something before
 * the step does.
 */
export type By = { executor: number; at: string; recordsActions?: boolean }

export type NewPlan = Plan & {
  id: string
  subject: string
  timeout_secs?: number
  deadline_hours?: number
  idempotencyKey?: string | undefined
  at: string
} & Pick<PlanRecord, 'priority' | 'wait_secs'>

/** How many steps of one plan may run at the same time. */
const MAX_AT_ONCE = 8
/** How often a plan is begun at most, because it may be the reason why its executors die. */
const MAX_STARTS = 2

const LOST = 'executor lost, may have run'
const SHUT_DOWN = 'the executor was shut down, may have run'
const CANCELLED = 'the plan was cancelled'
const DIED_TWICE = 'its executors died twice: the plan is not started a third time'

/** The record of a valid plan that was just submitted. */
export function newPlan({ id, subject, title, steps, parallel = false, at, ...rest }: NewPlan): PlanRecord {
  const { timeout_secs = null, priority, wait_secs, deadline_hours: hours } = rest
  return {
    plan_id: id,
    subject,
    title: title ?? null,
    steps,
    parallel,
    timeout_secs,
    ...(priority && { priority }),
    ...(wait_secs !== undefined && { wait_secs }),
    ...(hours !== undefined && { deadline_at: isoTime(Date.parse(at) + Math.round(HOUR_MS * hours)) }),
    status: 'queued',
    states: steps.map((step) => ({ id: step.id, status: 'pending', error: null, started_at: null, ended_at: null })),
    error: null,
    executor: null,
    starts: 0,
    is_cancel_requested: false,
    idempotency_key: rest.idempotencyKey ?? null,
    created_at: at,
    started_at: null,
    ended_at: null,
  }
}

/** The steps that begin together with a plan. */
export const firstSteps = (plan: PlanRecord): string[] =>
  nextSteps(plan)
    .slice(0, MAX_AT_ONCE)
    .map(({ id }) => id)

/**
 * queued -> running, together with the first steps. The fields that `begunBy` sets do not depend on the plan, so it need not be read before;
 * `asBegun` returns the resulting plan.
 */
export const BEGINS = { status: 'queued' } as const
export const begunBy = ({ executor, at }: By) => ({ status: 'running', executor, begun_at: at }) as const

/** A plan to which the fields of `begunBy` were written: its first steps are running, and none of them has acted so far. */
export const asBegun = (plan: PlanHead, { at, first }: { at: string; first: readonly string[] }): PlanHead => ({
  ...plan,
  starts: plan.starts + 1,
  started_at: plan.started_at ?? at,
  states: plan.states.map((state) =>
    first.includes(state.id) ? { ...state, status: 'running', started_at: at, has_acted: false } : state,
  ),
})

/**
 * running under the dead executor `from` -> running under this one. A step that was running has failed, unless it is idempotent
 * or has changed nothing (D7.3, D34). A plan that was begun twice has failed instead, and one whose cancel was requested is cancelled.
 */
export const takeOver =
  ({ executor, at, from }: By & { from: number }): PlanTransition =>
  (plan) => {
    if (!isRunBy(plan, from)) return undefined
    if (plan.is_cancel_requested) return cancel({ ...cutSteps(plan, { error: LOST, at }), executor }, at)
    if (plan.starts >= MAX_STARTS) return giveUp({ from, at })(plan)
    return { ...cutSteps(plan, { error: LOST, at }), executor, starts: plan.starts + 1 }
  }

/** Fails a plan whose executors died each time. `from` is the last one; `null` for a plan that is queued. */
export const giveUp =
  ({ from, at }: { from: number | null; at: string }): PlanTransition =>
  (plan) => {
    if (plan.executor !== from || (plan.status !== 'queued' && plan.status !== 'running')) return undefined
    const ended = endSteps(plan, { running: LOST, pending: DIED_TWICE, at })
    return { ...ended, status: 'failed', error: plan.error ?? DIED_TWICE }
  }

/** pending -> running, when all dependencies are done and no other step has to come first. */
export const beginStep =
  (stepId: string, { executor, at, recordsActions = false }: By): PlanTransition =>
  (plan) => {
    if (!isRunBy(plan, executor) || plan.is_cancel_requested) return undefined
    if (!nextSteps(plan).some(({ id }) => id === stepId)) return undefined
    return withState(plan, stepId, { status: 'running', started_at: at, ...(recordsActions && { has_acted: false }) })
  }

/** Begins the next steps, as many as may run at the same time. Changes nothing when none may begin. */
export const beginNextSteps =
  (by: By): PlanTransition =>
  (plan) => {
    if (!isRunBy(plan, by.executor)) return undefined
    const running = plan.states.filter(({ status }) => status === 'running').length
    return nextSteps(plan)
      .slice(0, Math.max(0, MAX_AT_ONCE - running))
      .reduce((next, { id }) => beginStep(id, by)(next) ?? next, plan)
  }

/** running -> done, with its output if that is recorded here, or with an `error` failed. */
export const endStep =
  (stepId: string, { executor, at, error, output, spent }: By & StepOutcome): PlanTransition =>
  (plan) => {
    if (!isRunningHere(plan, stepId, executor)) return undefined
    const paid = withSpent(plan, stepId, spent)
    if (error !== undefined) return failStep(paid, stepId, { error, at })
    return withState(paid, stepId, { status: 'done', ended_at: at, ...(output !== undefined && { output }) })
  }

type StepOutcome = { error?: string | undefined; output?: string | undefined; spent?: Spent | undefined }

/** Records that a running step may change something from now on. */
export const noteAction =
  (stepId: string, executor: number): PlanTransition =>
  (plan) => {
    if (!isRunningHere(plan, stepId, executor)) return undefined
    const hasActed = plan.states.some(({ id, has_acted }) => id === stepId && has_acted)
    return hasActed ? plan : withState(plan, stepId, { has_acted: true })
  }

/** Records the usage of an interrupted step. It still counts as running; the next transition ends it. */
export const noteSpent =
  (stepId: string, { executor, spent }: { executor: number; spent: Spent | undefined }): PlanTransition =>
  (plan) =>
    isRunningHere(plan, stepId, executor) ? withSpent(plan, stepId, spent) : undefined

const isRunningHere = (plan: PlanRecord, stepId: string, executor: number): boolean =>
  isRunBy(plan, executor) && plan.states.find(({ id }) => id === stepId)?.status === 'running'

/** running -> done or failed, once no step can go on. */
export const finish =
  ({ executor, at }: By): PlanTransition =>
  (plan) => {
    if (!isRunBy(plan, executor) || !areStepsOver(plan)) return undefined
    const hasFailed = plan.states.some(({ status }) => status === 'failed')
    return { ...plan, status: hasFailed ? 'failed' : 'done', ended_at: at }
  }

/** queued -> cancelled. A running plan is marked for its executor. */
export const requestCancel =
  (at: string): PlanTransition =>
  (plan) => {
    if (plan.status === 'queued') return cancel(plan, at)
    if (plan.status !== 'running') return undefined
    return plan.is_cancel_requested ? plan : { ...plan, is_cancel_requested: true }
  }

/** running -> cancelled. The steps that were running have failed, the rest is skipped. */
export const cancelled =
  ({ executor, at }: By): PlanTransition =>
  (plan) =>
    isRunBy(plan, executor) ? cancel(plan, at) : undefined

function cancel(plan: PlanRecord, at: string): PlanRecord {
  const ended = endSteps(plan, { running: `${CANCELLED} while this step ran`, pending: CANCELLED, at })
  return { ...ended, status: 'cancelled', is_cancel_requested: true }
}

/** running -> failed, because its time is over (D7.1). */
export const timedOut =
  ({ executor, at }: By): PlanTransition =>
  (plan) =>
    isRunBy(plan, executor) ? endLate(plan, at) : undefined

/** queued -> failed, because its time was over before its turn came (D54.7). */
export const expire =
  (at: string): PlanTransition =>
  (plan) =>
    isTooLate(plan, Date.parse(at)) ? endLate(plan, at) : undefined

function endLate(plan: PlanRecord, at: string): PlanRecord {
  const { code, error } = limitOf(plan)
  const ended = endSteps(plan, { running: error, pending: error, at })
  return { ...ended, status: 'failed', error: plan.error ?? error, error_code: code }
}

/** running without a running step -> queued, for another executor. It does not count as a start. */
export const giveBack =
  ({ executor, at }: By): PlanTransition =>
  (plan) => {
    if (!isRunBy(plan, executor) || hasRunningStep(plan)) return undefined
    if (plan.is_cancel_requested) return cancel(plan, at)
    return { ...plan, status: 'queued', executor: null, starts: plan.starts - 1 }
  }

/**
 * running -> queued, when its executor can no longer wait for its steps: they have failed, unless they are idempotent
 * or have changed nothing (D7.3, D34).
 */
export const interrupt =
  (by: By): PlanTransition =>
  (plan) => {
    const cut = cutSteps(plan, { error: SHUT_DOWN, at: by.at })
    return areStepsOver(cut) ? finish(by)(cut) : giveBack(by)(cut)
  }
