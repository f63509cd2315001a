import type { Files } from '../../agent/files/files.ts'
import type { QueuePlan } from '../../agent/tools/port.ts'
import type { Broker } from '../../cluster/commands/broker.ts'
import type { AttachedFile } from '../../kernel/attachment.ts'
import { hasKind, invalidRequest, MAX_PROBLEMS, type Problem, problemOfBody } from '../../kernel/errors.ts'
import { newPlanId, planRunId } from '../../kernel/ids.ts'
import type { Plan, PlanStep } from '../../kernel/plan-step.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { canonicalHash, type JoinableKeys, keyMismatch } from '../../platform/store/idempotency.ts'
import { undoRefused } from '../../platform/store/take-back.ts'
import type { EventSink, TenantEvent } from '../../tenancy/events/port.ts'
import type { Job, JobQueue } from '../queue/port.ts'
import { wavesOf } from './graph.ts'
import { planProblem, planProblems } from './plan.ts'
import type { PlanRecord, Plans } from './port.ts'
import { assertRepeatable, retryOf } from './retry.ts'
import { type NewPlan, newPlan } from './transitions.ts'

/** Body of `POST /plans/submit` (D7.1), checked against its schema. */
export type PlanRequest = Plan & Pick<NewPlan, 'timeout_secs' | 'deadline_hours' | 'priority' | 'wait_secs'>

export type SubmitDeps = {
  plans: Pick<Plans, 'create' | 'get' | 'takeBack'>
  idempotency: Pick<JoinableKeys, 'reserve' | 'join' | 'release'>
  queue: Pick<JobQueue, 'add'>
  /** Left out if no client follows the plan at this process. */
  broker?: Pick<Broker, 'expectRun'>
  events: EventSink
  now: () => Date
}

export type Submission = {
  request: PlanRequest
  subject: string
  idempotencyKey?: string | undefined
  /** A plan with this id is stored only once, however often it is submitted. Left out: a new id. */
  planId?: string
  /** Whether the caller repeats the submit until it succeeds, so that a failure need not be undone. By default true for a plan with an id. */
  isRepeated?: boolean
}

export type Submitted = {
  plan: PlanRecord
  /** Whether the plan was stored before. */
  isReplayed: boolean
}

/**
 * Stores a plan and queues it. Throws `invalid_request` for a plan that cannot be carried out (D7.2), and `conflict` for a key that
 * another request has used (D6.6), and `rate_limit` when too many plans of the tenant have not ended. A queue that cannot be reached does not matter: the plan is stored, and is queued later.
 */
export async function submitPlan(
  tenant: TenantId,
  { request, subject, idempotencyKey, planId, isRepeated = planId !== undefined }: Submission,
  deps: SubmitDeps,
): Promise<Submitted> {
  const known = checkedPlan(request)
  const create = (id: string, at: string) => newPlan({ ...known, id, subject, idempotencyKey, at })
  const storing = { operation: 'plan_submit', body: known, idempotencyKey, planId: planId ?? newPlanId(), create }
  return storePlan(tenant, { ...storing, isRepeated }, deps)
}

export type RetrySubmission = { plan: PlanRecord; subject: string; idempotencyKey?: string | undefined }

/**
 * Stores and queues a plan with the unfinished steps of an ended one (D27.2). Throws `conflict` when there is nothing to repeat, and
 * otherwise what `submitPlan` throws.
 */
export async function submitRetry(
  tenant: TenantId,
  { plan, subject, idempotencyKey }: RetrySubmission,
  deps: SubmitDeps,
): Promise<Submitted> {
  assertRepeatable(plan)
  const create = (id: string, at: string) => retryOf(plan, { id, subject, idempotencyKey, at })
  const body = { retry_of: plan.plan_id }
  return storePlan(tenant, { operation: 'plan_retry', body, idempotencyKey, planId: newPlanId(), create }, deps)
}

type Storing = {
  /** The kind of request, for which a key is unique, and what has to be the same when the key is used again. */
  operation: string
  body: unknown
  idempotencyKey: string | undefined
  planId: string
  /** Set when the caller repeats the submit with this id until it succeeds: a failure is then not undone. */
  isRepeated?: boolean
  create(id: string, at: string): PlanRecord
}

async function storePlan(tenant: TenantId, storing: Storing, deps: SubmitDeps): Promise<Submitted> {
  const stored = await reserveAndStore(tenant, storing, deps).catch(async (cause: unknown) => {
    if (!storing.isRepeated) await undo(tenant, storing, { deps, cause })
    throw cause
  })
  const { plan, isReplayed } = stored
  if (!isReplayed) deps.events.append(tenant, planQueued(plan))
  // A lost job is added again. If this fails, the reconciler adds it within 10 s after the queue is back.
  if (plan.status === 'queued')
    await deps.queue.add(jobOf(tenant, stored, deps.broker), { isNew: !isReplayed }).catch(() => {})
  return stored
}

/** The client usually follows the plan at once, so its executor sends the events to this gateway without a request. */
function jobOf(tenant: TenantId, { plan, isReplayed }: Submitted, broker: SubmitDeps['broker']): Job {
  const job: Job = { kind: 'plan', tenant, id: plan.plan_id }
  const reader = isReplayed ? undefined : broker?.expectRun?.(tenant, planRunId(plan.plan_id))
  return { ...job, ...(reader && { reader: { ...reader, comesBack: true } }) }
}

async function reserveAndStore(tenant: TenantId, storing: Storing, deps: SubmitDeps): Promise<Submitted> {
  const id = await reserve(tenant, storing, deps)
  const earlier = id === storing.planId ? undefined : await deps.plans.get(tenant, id)
  return earlier ? { plan: earlier, isReplayed: true } : insertPlan(tenant, id, storing, deps)
}

/** Deletes a plan that a store without an answer may have stored: otherwise the reconciler would queue it. */
function undo(
  tenant: TenantId,
  { operation, idempotencyKey: key, planId }: Storing,
  { deps: { plans, idempotency }, cause }: { deps: SubmitDeps; cause: unknown },
): Promise<void> {
  const free = async () => key === undefined || idempotency.release(tenant, { operation, key, id: planId })
  return undoRefused(cause, { free, takeBack: () => plans.takeBack(tenant, planId) })
}

const planQueued = ({ plan_id, title, created_at }: PlanRecord): TenantEvent => ({
  type: 'plan.queued',
  at: created_at,
  data: { plan_id, title: title ?? null },
})

/** Two requests with the same key may both find no plan. They store it under the same id, so only one succeeds. */
async function insertPlan(
  tenant: TenantId,
  id: string,
  { create: planOf }: Storing,
  { plans, now }: SubmitDeps,
): Promise<Submitted> {
  const plan = planOf(id, now().toISOString())
  if (await plans.create(tenant, plan)) return { plan, isReplayed: false }
  return { plan: (await plans.get(tenant, id)) ?? plan, isReplayed: true }
}

/** The id that belongs to the key: this plan's, or that of an earlier request with the same body. */
async function reserve(
  tenant: TenantId,
  { operation, body, idempotencyKey: key, planId }: Storing,
  { idempotency }: SubmitDeps,
): Promise<string> {
  if (key === undefined) return planId
  for (;;) {
    const reservation = await idempotency.reserve(tenant, { operation, key, hash: canonicalHash(body), id: planId })
    if (reservation.state === 'mismatch') throw keyMismatch('plan')
    if (reservation.state === 'reserved') return planId
    const { id } = reservation
    if (await idempotency.join(tenant, { operation, key, id })) return id // If not, the earlier request was refused and has freed the key.
  }
}

/** The known fields of a plan (D2.4). Throws `invalid_request` unless it can be carried out; `at` is the pointer of the plan in the body. */
export function checkedPlan({ title, steps, parallel, ...times }: PlanRequest, at = ''): PlanRequest {
  const { timeout_secs, deadline_hours, wait_secs, priority } = times
  const plan: PlanRequest = {
    ...(title !== undefined && { title }),
    steps: steps.map(knownStep),
    ...(parallel !== undefined && { parallel }),
    ...(timeout_secs !== undefined && { timeout_secs }),
    ...(deadline_hours !== undefined && { deadline_hours }),
    ...(wait_secs !== undefined && { wait_secs }),
    ...(priority && { priority }),
  }
  const problem = planProblem(plan)
  if (problem) throw invalidRequest(problem.message, { param: at + problem.path })
  return plan
}

const knownStep = ({ id, prompt, title, depends_on, writes, idempotent, attachments }: PlanStep): PlanStep => ({
  id,
  prompt,
  ...(title !== undefined && { title }),
  ...(depends_on !== undefined && { depends_on }),
  ...(writes !== undefined && { writes }),
  ...(idempotent !== undefined && { idempotent }),
  ...(attachments?.length && { attachments: attachments.map(({ file_id }) => ({ file_id })) }),
})

/** Finds the files of each of a plan's steps (D47.6). Throws `not_found`, and `invalid_request` for one that no model may get. */
export async function stepFiles(
  tenant: TenantId,
  { steps }: Pick<PlanRequest, 'steps'>,
  { files, at = '' }: { files: StepFiles; at?: string },
): Promise<AttachedFile[][]> {
  const found: AttachedFile[][] = []
  for (const [i, { attachments = [] }] of steps.entries()) {
    const ids = attachments.map(({ file_id: id }) => id)
    found.push(await files.attached(tenant, ids, (each) => `${at}/steps/${i}/attachments/${each}`))
  }
  return found
}

export type StepFiles = Pick<Files, 'attached'>

/** The subject of a plan that no request has submitted (D3.5). */
export const NOBODY = 'anonymous'

/** Queues the approved plans of runs with `auto_queue_plan`. */
export const queuePlanWith =
  (deps: SubmitDeps) =>
  (tenant: TenantId): QueuePlan =>
  async (plan) => {
    if (plan.steps.length === 0) return { note: 'the plan has no steps' }
    try {
      const { plan: queued } = await submitPlan(tenant, { request: plan, subject: NOBODY }, deps)
      return { plan_id: queued.plan_id }
    } catch (cause) {
      // The plan ends with this note instead of an error, because the model would only propose it again at once.
      if (hasKind(cause, 'rate_limit')) return { note: cause.message }
      throw cause
    }
  }

/** The same when the queue is off (PLAN_QUEUE), or there is no store. */
export const queueNothing = (): QueuePlan => async () => ({ note: 'the plan queue is switched off on this server' })

/** `waves` holds the ids of the steps that can run at the same time, and is empty while there are problems. */
export type PlanCheck = { problems: Problem[]; waves: string[][] }

/** Reports the errors that a submit of this plan would have, all at once, and stores nothing (D27.3). */
export function checkPlan(plan: PlanRequest): PlanCheck {
  const found = [...planProblems(plan)].slice(0, MAX_PROBLEMS)
  const problems = found.map(({ path, message }) => ({ param: path, message }))
  const waves = problems.length > 0 ? [] : wavesOf(plan.steps).waves.map((wave) => wave.map(({ id }) => id))
  return { problems, waves }
}

/** The same for a plan that its schema has refused before it was read. Throws `cause` if it is another error. */
export const refusedPlan = (cause: unknown): PlanCheck => ({ problems: [problemOfBody(cause)], waves: [] })
