import { stepRunId } from '../../kernel/ids.ts'
import type { PlanStep } from '../../kernel/plan-step.ts'
import { truncate } from '../../kernel/text.ts'
import { graphOf } from './graph.ts'
import type { PlanHead, PlanRecord, Spent, StepState } from './port.ts'

/** The latest time that a `Date` can have. */
const NEVER = '+275760-09-13T00:00:00.000Z'

/** Bounds the record of a plan with many failures. */
const MAX_ERROR_CHARS = 4_000

/** When and why a plan ends before its steps have ended (D7.1, D54.7). `atMs` is infinite if it has no time limit. */
export function limitOf({ created_at, started_at, timeout_secs, wait_secs, deadline_at }: PlanHead) {
  const begunMs = started_at === null ? Number.POSITIVE_INFINITY : Date.parse(started_at)
  const waitMs = 1_000 * (wait_secs ?? Number.POSITIVE_INFINITY)
  const beginByMs = Date.parse(created_at) + waitMs
  const noRoom = `no executor had room for the plan within its ${wait_secs} s; submit it again, or with a longer wait_secs`
  const limits = [
    [begunMs > beginByMs ? beginByMs : Number.POSITIVE_INFINITY, 'no_room', noRoom],
    [Date.parse(deadline_at ?? NEVER), 'timeout', `the plan did not end by its deadline, ${deadline_at}`],
    [
      begunMs + 1_000 * (timeout_secs ?? Number.POSITIVE_INFINITY),
      'timeout',
      `the plan did not end within its ${timeout_secs} s`,
    ],
  ] as const
  const [atMs, code, error] = limits.reduce((first, each) => (each[0] < first[0] ? each : first))
  return { atMs, code, error }
}

/** Whether the time of a plan was over before its turn has come (D54.7). */
export const isTooLate = (plan: PlanHead, nowMs: number): boolean =>
  plan.status === 'queued' && limitOf(plan).atMs <= nowMs

/** Whether the executor of this epoch runs the plan. */
export const isRunBy = ({ status, executor }: PlanRecord, epoch: number): boolean =>
  status === 'running' && executor === epoch

export const hasRunningStep = ({ states }: PlanRecord): boolean => states.some(({ status }) => status === 'running')

/** Whether no step is running or can still begin. Dependents of a failed step have been skipped, so they count as ended. */
export const areStepsOver = ({ states }: PlanRecord): boolean =>
  states.every(({ status }) => status !== 'pending' && status !== 'running')

/**
 * The steps that may begin: the pending ones of the first wave that is not over, or without `parallel` the first step whose
 * dependencies are done, once no step is running. A wave begins when the one before it is over, because only steps of one wave are known
 * not to write the same file (api.md "Plan step").
 */
export function nextSteps({ steps, states, parallel }: PlanRecord): PlanStep[] {
  const statusOf = new Map(states.map(({ id, status }) => [id, status]))
  const pending = steps.filter(({ id }) => statusOf.get(id) === 'pending')
  if (!parallel) {
    if (states.some(({ status }) => status === 'running')) return []
    const isReady = ({ depends_on: after = [] }: PlanStep) => after.every((id) => statusOf.get(id) === 'done')
    const ready = pending.find(isReady)
    return ready ? [ready] : []
  }
  const { waveOf } = graphOf(steps)
  const open = states.filter(({ status }) => status === 'pending' || status === 'running')
  const first = Math.min(...open.map(({ id }) => waveOf.get(id) ?? 0))
  return pending.filter(({ id }) => waveOf.get(id) === first)
}

/** The plan with a change to one step's state. */
export const withState = (plan: PlanRecord, id: string, change: Partial<StepState>): PlanRecord => ({
  ...plan,
  states: plan.states.map((state) => (state.id === id ? { ...state, ...change } : state)),
})

/** The run of a step's last attempt. */
export const runOfStep = (planId: string, { id, taken_from, earlier_starts: earlier = [] }: StepState): string =>
  stepRunId(taken_from ?? planId, { stepId: id, attempt: earlier.length })

/** The plan with the usage of a step's attempt added. */
export function withSpent(plan: PlanRecord, id: string, spent: Spent | undefined): PlanRecord {
  if (!spent) return plan
  const { spent: earlier = NOTHING_SPENT } = plan.states.find((state) => state.id === id) ?? {}
  return withState(plan, id, { spent: addSpent(earlier, spent) })
}

export const NOTHING_SPENT: Spent = { input_tokens: 0, output_tokens: 0, cost_usd: 0 }

export const addSpent = (a: Spent, b: Spent): Spent => ({
  input_tokens: a.input_tokens + b.input_tokens,
  output_tokens: a.output_tokens + b.output_tokens,
  cost_usd: a.cost_usd + b.cost_usd,
})

/** The plan with a failed step, whose dependents are skipped transitively. The first failure is the plan's error. */
export function failStep(plan: PlanRecord, id: string, { error, at }: { error: string; at: string }): PlanRecord {
  const message = truncate(error, MAX_ERROR_CHARS)
  const failed = withState(plan, id, { status: 'failed', error: message, ended_at: at })
  const behind = dependentsOf(plan, id)
  const skip = (state: StepState): StepState =>
    behind.has(state.id) && state.status === 'pending' ? skipped(state, `it depends on ${id}, which failed`, at) : state
  return { ...failed, states: failed.states.map(skip), error: plan.error ?? message }
}

/** The plan after all its running steps have failed and the rest was skipped. `error` becomes the plan's error if it has none. */
export function endSteps(plan: PlanRecord, reason: { running: string; pending: string; at: string }): PlanRecord {
  const { running, pending, at } = reason
  const end = (state: StepState): StepState => {
    if (state.status === 'pending') return skipped(state, pending, at)
    return state.status === 'running' ? { ...state, status: 'failed', error: running, ended_at: at } : state
  }
  return { ...plan, states: plan.states.map(end), ended_at: at }
}

/**
 * The plan after its running steps were interrupted: idempotent ones, and those that have changed nothing, are pending
 * again; the others have failed (D7.3, D34).
 */
export function cutSteps(plan: PlanRecord, failure: { error: string; at: string }): PlanRecord {
  const again = new Set(plan.steps.filter(({ idempotent = false }) => idempotent).map(({ id }) => id))
  const running = plan.states.filter(({ status }) => status === 'running')
  return running.reduce(
    (cut, state) =>
      again.has(state.id) || state.has_acted === false ? withRestart(cut, state) : failStep(cut, state.id, failure),
    plan,
  )
}

/** `has_acted` belongs to an attempt: the next one sets it when it begins. */
function withRestart(plan: PlanRecord, { has_acted: _hasActed, ...state }: StepState): PlanRecord {
  const { started_at: startedAt, earlier_starts: earlier = [] } = state
  const earlier_starts = startedAt === null ? earlier : [...earlier, startedAt]
  const again: StepState = { ...state, status: 'pending', started_at: null, earlier_starts }
  return { ...plan, states: plan.states.map((each) => (each.id === state.id ? again : each)) }
}

const skipped = (state: StepState, error: string, at: string): StepState => ({
  ...state,
  status: 'skipped',
  error,
  ended_at: at,
})

/** The steps that depend on this one, directly or indirectly. */
function dependentsOf({ steps }: PlanRecord, id: string): ReadonlySet<string> {
  const { dependents } = graphOf(steps)
  const found = new Set<string>()
  const open = [id]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const dependent of dependents.get(next) ?? []) {
      if (!found.has(dependent)) open.push(dependent)
      found.add(dependent)
    }
  }
  return found
}
