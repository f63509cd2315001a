import type { Priority } from '../../agent/providers/port.ts'
import type { PlanStep } from '../../kernel/plan-step.ts'
import type { TenantId } from '../../kernel/tenant.ts'

export const PLAN_STATUSES = ['queued', 'running', 'done', 'failed', 'cancelled'] as const
export type PlanStatus = (typeof PLAN_STATUSES)[number]

/** Why a tick submits no plan: the previous one has not ended, the tenant's rate is used up, or too many of its plans wait or run. */
export type SkipReason = 'plan_not_ended' | 'rate_limit' | 'plan_limit'

export const STEP_STATUSES = ['pending', 'running', 'done', 'failed', 'skipped'] as const
export type StepStatus = (typeof STEP_STATUSES)[number]

/** The tokens and dollars that runs have used. */
export type Spent = { input_tokens: number; output_tokens: number; cost_usd: number }

/** The state of one step (api.md "Plan step"). Times are in ISO 8601. */
export type StepState = {
  id: string
  status: StepStatus
  /** Why it failed or was skipped. */
  error: string | null
  started_at: string | null
  ended_at: string | null
  /** The starts of attempts that were cut off, when the step may be repeated. */
  earlier_starts?: readonly string[]
  /**
   * Whether its attempt may have changed something: `false` at first, set to `true` before the first call of a tool that changes something.
   * Absent if the executor records no such calls (`By`).
   */
  has_acted?: boolean
  /** The usage of its attempts. Absent when none has ended in the executor that began it. */
  spent?: Spent
  /** The output of a done step, if it is short; longer ones are stored separately. */
  output?: string
  /** The plan that has carried out the step; this plan has taken it over as done (D27.2). */
  taken_from?: string
}

/**
 * The stored record of a queued plan (api.md "Plan", D7). Every change is a compare-and-set of the whole record by a pure transition, made
 * before the side effect that it allows. `states` are in the order of `steps`.
 */
export type PlanRecord = {
  plan_id: string
  subject: string
  title: string | null
  steps: readonly PlanStep[]
  parallel: boolean
  timeout_secs: number | null
  /** The priority of its steps' model calls; absent: `batch`. */
  priority?: Priority
  /** If it has not begun within this many seconds of its submission, it fails. */
  wait_secs?: number
  /** The time by which it must end. */
  deadline_at?: string
  status: PlanStatus
  states: readonly StepState[]
  /** The first failure. */
  error: string | null
  /** The reason if it ended before its steps because its time was over (D54.7). */
  error_code?: 'no_room' | 'timeout'
  /** The epoch of the executor that runs it or has run it; `null` while it is queued. */
  executor: number | null
  /** How many executors have begun it. */
  starts: number
  is_cancel_requested: boolean
  idempotency_key: string | null
  /** The plan that this one repeats (D27.2). */
  retry_of?: string
  created_at: string
  started_at: string | null
  ended_at: string | null
}

/**
 * A transition: the next record, or `undefined` when it does not apply to this one. It has no effects. `steps` never change. If it
 * returns the record itself, nothing is written.
 */
export type PlanTransition = (plan: PlanRecord) => PlanRecord | undefined

export type PlanQuery = {
  status?: PlanStatus | undefined
  /** 1 to 200. */
  limit: number
  cursor?: string | undefined
}
/** A plan without its steps, which may be long. `states` holds their ids. */
export type PlanHead = Omit<PlanRecord, 'steps'>
export type PlanPage = { plans: PlanHead[]; next_cursor: string | null }

/** The plans of one tenant that have not ended: how many there may be, and how many bytes the JSON of their steps may have. */
export type PlanLimits = { maxPlans: number; maxBytes: number }

/** Stores plans. Every method throws `unavailable` when the store does not answer. */
export interface Plans {
  /**
   * Returns `false` when a plan with this id is already stored. Throws `rate_limit`, and stores nothing, when the tenant's open plans have
   * reached its limits (`PlanLimits`).
   */
  create(tenant: TenantId, plan: PlanRecord): Promise<boolean>
  /** Deletes a plan whose creation was refused, unless it has begun. May be repeated. */
  takeBack(tenant: TenantId, planId: string): Promise<void>
  get(tenant: TenantId, planId: string): Promise<PlanRecord | undefined>
  /** A plan that this process has just stored, in that state. It may have begun since: only a caller that also gets its start notice may use it. */
  created(tenant: TenantId, planId: string): PlanRecord | undefined
  /** The same, for the first caller only. */
  takeCreated(tenant: TenantId, planId: string): PlanRecord | undefined
  /** The plans with these ids, by id. */
  heads(tenant: TenantId, planIds: readonly string[]): Promise<ReadonlyMap<string, PlanHead>>
  /** Newest first. Throws `invalid_request` for an invalid cursor. */
  list(tenant: TenantId, query: PlanQuery): Promise<PlanPage>
  /**
   * queued -> running, together with the first steps, with a single command. Returns the new plan, or `undefined` when it is not
   * queued, does not exist, or `mayWrite` returns `false`. `executePlan` starts its steps.
   */
  begin(
    tenant: TenantId,
    planId: string,
    by: { executor: number; at: string },
    mayWrite?: () => boolean,
  ): Promise<PlanRecord | undefined>
  /**
   * Applies a transition by compare-and-set, and repeats it when another write came first. Returns the new record, or `undefined` when the
   * transition does not apply, the plan does not exist, or `mayWrite`, which is called before each write, returns `false`.
   */
  change(
    tenant: TenantId,
    planId: string,
    transition: PlanTransition,
    mayWrite?: () => boolean,
  ): Promise<PlanRecord | undefined>
  /** Whether the output of a step of this plan is short enough to be recorded with the step's end (`StepState`) instead of being saved. */
  isRecordedWithEnd(tenant: TenantId, planId: string, output: string): boolean
  /** Stores the output of a step, before the step is recorded as done. A repetition replaces it. */
  saveOutput(tenant: TenantId, planId: string, stepId: string, output: string): Promise<void>
  /** The saved outputs of steps, by id. */
  outputs(tenant: TenantId, planId: string, stepIds: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** Plans of all tenants that have not ended, oldest first, in pages; the cursor is the last plan's id. */
  active(after: string | undefined): Promise<readonly { tenant: TenantId; planId: string }[]>
  /**
   * Removes from the active plans one that has ended, or whose creation was never completed. For a sweep that finds such a plan in
   * `active`; does nothing for other plans.
   */
  retire(tenant: TenantId, planId: string): Promise<void>
}

export type { PlanEvent } from '../../kernel/events.ts'
