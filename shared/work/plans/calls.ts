import type { Broker } from '../../cluster/commands/broker.ts'
import type { FrameStream, Frames } from '../../cluster/journal/frame-stream.ts'
import { conflict, notFound } from '../../kernel/errors.ts'
import { planRunId } from '../../kernel/ids.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { JobQueue } from '../queue/port.ts'
import { eventsOf } from './events-of.ts'
import { renderEvents, watchPlan } from './frames.ts'
import { isEnded } from './plan-runs.ts'
import type { PlanEvent, PlanQuery, PlanRecord, Plans } from './port.ts'
import { isTooLate } from './states.ts'
import { readOutputs } from './step-output.ts'
import {
  type PlanRequest,
  type StepFiles,
  type SubmitDeps,
  type Submitted,
  stepFiles,
  submitPlan,
  submitRetry,
} from './submit.ts'
import { expire, requestCancel } from './transitions.ts'
import { type PlanSummary, type PlanView, planSummary, planView } from './view.ts'

export type PlanCallsDeps = Omit<SubmitDeps, 'plans' | 'queue' | 'broker'> & {
  plans: Pick<Plans, 'create' | 'created' | 'get' | 'list' | 'change' | 'outputs' | 'takeBack'>
  queue: Pick<JobQueue, 'add'>
  broker: Pick<Broker, 'followRun' | 'cancelRun' | 'expectRun'>
  files: StepFiles
}

/** The most characters of all steps' outputs in one answer. */
const MAX_OUTPUT_CHARS = 8 * 1024 * 1024
const LEFT_OUT = '[left out: the outputs of this plan are too long for one answer]'
const READ_AT_ONCE = 20

/** A request of the API; `subject` is the caller's (D3.5). */
export type PlanCall = { subject: string; idempotencyKey?: string | undefined }

export type ShownSubmission = { plan: PlanView; isReplayed: boolean }

/**
 * The plan queue for the API (api.md "Plan queue", D7). Every method throws `unavailable` when the store does not answer, and
 * `not_found` for an unknown plan and for another tenant's.
 */
export class PlanCalls {
  readonly #deps: PlanCallsDeps

  constructor(deps: PlanCallsDeps) {
    this.#deps = deps
  }

  /** Throws `invalid_request` (D7.2), and `conflict` for a key that another request has used (D6.6). */
  async submit(tenant: TenantId, request: PlanRequest, call: PlanCall): Promise<ShownSubmission> {
    await stepFiles(tenant, request, this.#deps)
    return this.#shown(tenant, await submitPlan(tenant, { request, ...call }, this.#deps))
  }

  /**
   * Submits the unfinished steps of an ended plan as a new plan (D27.2). Throws `conflict` for a plan that has not
   * ended, and when all steps are done.
   */
  async retry(tenant: TenantId, planId: string, call: PlanCall): Promise<ShownSubmission> {
    const plan = await this.#stored(tenant, planId)
    return this.#shown(tenant, await submitRetry(tenant, { plan, ...call }, this.#deps))
  }

  /** With the outputs of all steps that are done, or only of some. */
  async get(
    tenant: TenantId,
    planId: string,
    { outputsOf }: { outputsOf?: readonly string[] } = {},
  ): Promise<PlanView> {
    const plan = await this.#stored(tenant, planId)
    return planView(plan, await this.#outputs(tenant, plan, outputsOf && new Set(outputsOf)))
  }

  async list(tenant: TenantId, query: PlanQuery): Promise<{ plans: PlanSummary[]; next_cursor: string | null }> {
    const page = await this.#deps.plans.list(tenant, query)
    const late = page.plans.filter((plan) => isTooLate(plan, this.#deps.now().getTime()))
    await Promise.all(late.map(({ plan_id }) => this.#find(tenant, plan_id)))
    const { plans, next_cursor } = late.length === 0 ? page : await this.#deps.plans.list(tenant, query)
    return { plans: plans.map(planSummary), next_cursor }
  }

  /**
   * A plan that no executor has begun is cancelled when this resolves; a running one ends within 2 s at its executor. Throws `conflict`
   * when it has already ended.
   */
  async cancel(tenant: TenantId, planId: string): Promise<PlanView> {
    const { plans, broker, now } = this.#deps
    const changed = await plans.change(tenant, planId, requestCancel(now().toISOString()))
    const plan = changed ?? (await this.#stored(tenant, planId))
    if (!changed && isEnded(plan)) throw conflict(`the plan has ended already: it is ${plan.status}`)
    // For an ended plan, the executor that gets its job announces the end. If a running plan's executor does not get this message, it reads
    // the request within a second.
    if (!isEnded(plan)) await broker.cancelRun(tenant, planRunId(planId)).catch(() => {})
    return this.#view(tenant, plan)
  }

  /**
   * The events after number `after`, until the plan ends. For an ended plan they are made from its record; `undefined` when no more
   * events follow.
   */
  async frames(tenant: TenantId, planId: string, after: number): Promise<FrameStream | undefined> {
    const created = after === 0 ? this.#deps.plans.created(tenant, planId) : undefined
    const plan = created ?? (await this.#stored(tenant, planId))
    const events = eventsOf(plan)
    if (isEnded(plan) && after >= events.length) return undefined
    // A reader that reconnects gets the rest from the executor as long as that knows the run, so that the order of events matches the beginning.
    if (isEnded(plan) && after === 0) return replay(events, after)
    return watchPlan({
      after: Math.min(after, events.length), // A number above that of the last event is treated as the last (D4.5c).
      follow: (seq) => this.#deps.broker.followRun(tenant, planRunId(planId), seq),
      read: () => this.#find(tenant, planId),
    })
  }

  async #stored(tenant: TenantId, planId: string): Promise<PlanRecord> {
    const plan = await this.#find(tenant, planId)
    if (!plan) throw notFound(`no plan ${planId}: GET /plans lists the plans`)
    return plan
  }

  /**
   * Returns a plan, and ends it first if its time was over before its turn came: this end is recorded by the first
   * reader, or by the executor that takes the plan.
   */
  async #find(tenant: TenantId, planId: string): Promise<PlanRecord | undefined> {
    const { plans, now } = this.#deps
    const plan = await plans.get(tenant, planId)
    const end = expire(now().toISOString())
    return plan && end(plan) ? ((await plans.change(tenant, planId, end)) ?? plan) : plan
  }

  async #shown(tenant: TenantId, { plan, isReplayed }: Submitted): Promise<ShownSubmission> {
    return { plan: await this.#view(tenant, plan), isReplayed }
  }

  async #view(tenant: TenantId, plan: PlanRecord): Promise<PlanView> {
    return planView(plan, await this.#outputs(tenant, plan))
  }

  async #outputs(tenant: TenantId, plan: PlanRecord, wanted?: ReadonlySet<string>): Promise<Map<string, string>> {
    const { plans } = this.#deps
    const done = plan.states.filter(({ id, status }) => status === 'done' && wanted?.has(id) !== false)
    const stepIds = done.map(({ id }) => id)
    const outputs = new Map<string, string>()
    let chars = 0
    for (let at = 0; at < stepIds.length; at += READ_AT_ONCE) {
      const ids = stepIds.slice(at, at + READ_AT_ONCE)
      const read = chars < MAX_OUTPUT_CHARS ? await readOutputs(tenant, plan, { plans, stepIds: ids }) : new Map()
      for (const id of ids) {
        const output: string = read.get(id) ?? ''
        chars += output.length
        outputs.set(id, chars <= MAX_OUTPUT_CHARS ? output : LEFT_OUT)
      }
    }
    return outputs
  }
}

async function* replay(events: readonly PlanEvent[], after: number): AsyncGenerator<Frames, void, undefined> {
  const frames = renderEvents(events, after)
  if (frames) yield frames
}
