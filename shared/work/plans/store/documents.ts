import type { JsonObject } from '../../../kernel/events.ts'
import type { PlanStep } from '../../../kernel/plan-step.ts'
import { DAY_MS } from '../../../kernel/time.ts'
import type { CollectionSpec } from '../../../platform/store/port.ts'
import type { PlanHead, PlanRecord } from '../port.ts'
import { asBegun, firstSteps } from '../transitions.ts'

/** A plan is kept for this long after its end. */
const KEPT_MS = 30 * DAY_MS
/** A plan that has not ended in this time never will. Its steps are written once, so their expiry is fixed with the plan. */
const LONGEST_MS = 365 * DAY_MS

/** The plans, including short steps. Longer ones are written once, so that a change of state writes only this document. */
export const PLANS: CollectionSpec = {
  name: 'plans',
  key: ['plan_id'],
  order: { within: [], by: ['created_ms', 'plan_id'], direction: 'descending' },
  filters: ['status'],
  expiresBy: 'expires_ms',
}

/** One document for each attempt to create a plan; the plan names the valid one. */
export const PLAN_STEPS: CollectionSpec = { name: 'plan_steps', key: ['steps_id'], expiresBy: 'expires_ms' }

export const PLAN_OUTPUTS: CollectionSpec = {
  name: 'plan_outputs',
  key: ['plan_id', 'step_id'],
  expiresBy: 'expires_ms',
}

/**
 * The plans of all tenants that may not have ended, and the length of each. Its documents belong to no tenant, so that a sweep finds
 * those of all; the total is that of one owner.
 */
export const ACTIVE_PLANS: CollectionSpec = {
  name: 'active_plans',
  key: ['plan_id'],
  order: { within: [], by: ['created_ms', 'plan_id'], direction: 'ascending' },
  total: { within: ['owner'], of: 'bytes' },
}

/** Where the steps of a plan are: in its record, or in a document with this id. */
export type StepsPlace = { own_steps: readonly PlanStep[] } | { steps_id: string }

/**
 * The fields of a plan's document beside those of the record. `first_steps`: the steps of a queued plan that begin together with it. `begun_at`: it
 * has begun since its document was last written in full (`begunBy`).
 */
type Stored = {
  created_ms: number
  own_steps?: readonly PlanStep[]
  steps_id?: string
  first_steps?: readonly string[]
  begun_at?: string
  expires_ms: number
}

export function toDoc(plan: PlanRecord, place: StepsPlace): JsonObject {
  const { steps: _steps, ...head } = plan
  const created_ms = Date.parse(plan.created_at)
  const endsMs = plan.ended_at === null ? Infinity : Date.parse(plan.ended_at) + KEPT_MS
  const first_steps = plan.status === 'queued' ? firstSteps(plan) : undefined
  return { ...head, ...place, first_steps, created_ms, expires_ms: Math.min(endsMs, created_ms + LONGEST_MS) }
}

/** The steps outlive their plan by a day, so that an existing plan always has its steps. */
export const stepsDoc = (steps_id: string, steps: readonly PlanStep[], createdMs: number): JsonObject => ({
  steps_id,
  steps,
  expires_ms: createdMs + LONGEST_MS + DAY_MS,
})

/** An output is stored before the end of its plan is known: it is kept for twice as long. */
export const outputDoc = (key: { plan_id: string; step_id: string }, output: string, now: Date): JsonObject => ({
  ...key,
  output,
  expires_ms: now.getTime() + 2 * KEPT_MS,
})

export function toHead(doc: JsonObject): { head: PlanHead; place: StepsPlace } {
  const { created_ms: _created, expires_ms: _expires, ...others } = doc as PlanHead & Stored
  const { own_steps, steps_id = '', first_steps: first = [], begun_at: at, ...plan } = others
  const head = at === undefined ? plan : asBegun(plan, { at, first })
  return { head, place: own_steps ? { own_steps } : { steps_id } }
}

const STEP_CHARS = 500
const LINK_CHARS = 100

/** About how many characters these steps take in memory. */
export const sizeOf = (steps: readonly PlanStep[]): number =>
  steps.reduce((size, step) => size + STEP_CHARS + step.prompt.length + linksOf(step) * LINK_CHARS, 0)

const linksOf = ({ depends_on: after = [], writes = [] }: PlanStep): number => after.length + writes.length
