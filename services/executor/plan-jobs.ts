import type { KnownExecutors } from '../../shared/cluster/members/executors.ts'
import type { Announce } from '../../shared/cluster/relay/worker/executor.ts'
import { errorEvent, type PlanEvent, type RunEvent } from '../../shared/kernel/events.ts'
import { planRunId } from '../../shared/kernel/ids.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { shortLine } from '../../shared/reading/title.ts'
import type { EventSink, TenantEvent } from '../../shared/tenancy/events/port.ts'
import { executePlan, type PlanExecutionDeps, type PlanOutcome } from '../../shared/work/plans/execute.ts'
import { isEnded } from '../../shared/work/plans/plan-runs.ts'
import type { PlanRecord, Plans } from '../../shared/work/plans/port.ts'
import type { RunStep } from '../../shared/work/plans/step-runs.ts'
import { giveUp, takeOver } from '../../shared/work/plans/transitions.ts'
import type { Job, JobEnd } from '../../shared/work/queue/port.ts'
import { TITLE_CHARS } from '../../shared/work/runs/records/record.ts'
import type { Runs } from '../../shared/work/runs/runs.ts'
import { GIVEN_BACK, retryJobs, type Settled, type UntilEnded } from './job-ends.ts'

export type PlanJobsDeps = {
  runs: Pick<Runs, 'open'>
  plans: Plans
  stepsOf(tenant: TenantId, plan: PlanRecord): RunStep
  /** Removes the folder of a plan that has ended. */
  removeFolder(tenant: TenantId, planId: string): Promise<void>
  /** Another executor continues the plan. */
  leaveFolder(tenant: TenantId, planId: string): void
  executors: Pick<KnownExecutors, 'isAlive'>
  /** This executor's epoch, under which it claims plans. */
  epoch(): number
  /** Whether this process may still act for what it has claimed. */
  isHeld(): boolean
  announce: Announce
  /** Aborted when this process shuts down, and its plans go back to the queue. A plan whose place another tenant needs also goes back. */
  draining: AbortSignal
  events: EventSink
  metrics: Metrics
  log: Log
}

/** `leaving`: the plan goes back to the queue. `reader` waits for a plan that no executor has begun before. */
type Handling = { leaving: AbortSignal; reader?: Job['reader'] | undefined }

/** The jobs that execute plans: each claims its plan, or takes it over from a dead executor, and executes its steps. */
export class PlanJobs {
  readonly #deps: PlanJobsDeps
  readonly #untilEnded: UntilEnded

  constructor(deps: PlanJobsDeps) {
    this.#deps = deps
    this.#untilEnded = retryJobs((id, cause) => {
      deps.log.debug('a plan cannot be executed at the moment', { plan_id: id, cause })
    })
  }

  /** Resolves when the plan has ended, here or elsewhere, or went back to the queue. Never rejects. */
  handle(job: Job, giveWay?: AbortSignal): Promise<JobEnd | undefined> {
    const { draining } = this.#deps
    const leaving = giveWay ? AbortSignal.any([draining, giveWay]) : draining
    return this.#untilEnded(job, (tenant, id) => this.#settle(tenant, id, { leaving, reader: job.reader }))
  }

  /** Fails a plan whose executors have died each time. */
  async givenUp({ tenant, id }: Job): Promise<JobEnd | undefined> {
    const { plans, isHeld } = this.#deps
    const plan = await plans.get(tenant, id)
    if (!plan || isEnded(plan)) return plan && endOf(plan)
    const ended = await plans.change(tenant, id, giveUp({ from: plan.executor, at: now() }), isHeld)
    return ended ? endOf(ended) : { again: true }
  }

  async #settle(tenant: TenantId, id: string, { leaving, reader }: Handling): Promise<Settled> {
    const { plans, epoch, isHeld } = this.#deps
    const by = { executor: epoch(), at: now() }
    const begun = leaving.aborted ? undefined : await plans.begin(tenant, id, by, isHeld)
    if (begun) return this.#carryOut(tenant, begun, { leaving, ...(begun.started_at === by.at && { reader }) })
    const found = await plans.get(tenant, id)
    if (!found) return { end: undefined }
    if (isEnded(found)) return { end: endOf(found) }
    if (leaving.aborted) return GIVEN_BACK
    const taken = await this.#takeOver(tenant, found)
    return taken && this.#carryOut(tenant, taken, { leaving })
  }

  /** Executes a plan that this process has claimed. */
  async #carryOut(tenant: TenantId, plan: PlanRecord, handling: Handling): Promise<Settled> {
    const { plans, removeFolder, leaveFolder, log } = this.#deps
    const { plan_id: id } = plan
    const outcome = isEnded(plan) ? 'ended' : await this.#execute(tenant, plan, handling)
    if (outcome !== 'ended') leaveFolder(tenant, id)
    if (outcome === 'given_back') return GIVEN_BACK
    if (outcome === 'lost') return undefined
    await removeFolder(tenant, id).catch((cause: unknown) => {
      log.error('the folder of an ended plan could not be removed', { plan_id: id, cause })
    })
    return { end: endOf((await plans.get(tenant, id)) ?? plan) }
  }

  /** Returns the plan when this executor has claimed it; `undefined` while another executor has it, or while this process may not act. */
  async #takeOver(tenant: TenantId, { plan_id: id, executor: from }: PlanRecord): Promise<PlanRecord | undefined> {
    const { plans, executors, epoch, isHeld } = this.#deps
    const by = { executor: epoch(), at: now(), recordsActions: true }
    if (from === null) return undefined
    // While the store did not answer, this process may have claimed the plan without knowing it, or lost it: then no handler works on it.
    if (from !== by.executor && (await executors.isAlive(from))) return undefined
    return plans.change(tenant, id, takeOver({ ...by, from }), isHeld)
  }

  async #execute(tenant: TenantId, plan: PlanRecord, { leaving, reader }: Handling): Promise<PlanOutcome> {
    const { runs, announce } = this.#deps
    let outcome: PlanOutcome = 'lost'
    const identity = { id: planRunId(plan.plan_id), tenant, sessionId: undefined }
    const about = { plan_id: plan.plan_id, ...(plan.title && { title: shortLine(plan.title, TITLE_CHARS) }) }
    const run = runs.open({ ...identity, needsNoReader: true, kind: 'plan', about })
    announce(run, reader)
    const perform = this.#perform.bind(this)
    await run.execute(async function* (_run, signal): AsyncGenerator<RunEvent, void, undefined> {
      outcome = yield* perform(tenant, plan, { ...splitSignal(signal), draining: leaving })
    })
    return outcome
  }

  async *#perform(
    tenant: TenantId,
    plan: PlanRecord,
    signals: Pick<PlanExecutionDeps, 'cancelled' | 'stopped' | 'draining'>,
  ): AsyncGenerator<RunEvent, PlanOutcome, undefined> {
    const { plans, stepsOf, isHeld, epoch, events, metrics, log } = this.#deps
    const executor = plan.executor ?? epoch()
    const deps = {
      plans,
      executor,
      mayWrite: () => isHeld() && epoch() === executor,
      isReplaced: () => epoch() !== executor,
      runStep: stepsOf(tenant, plan),
      now: () => new Date(),
      ...signals,
    }
    const execution = executePlan(tenant, plan, deps)
    try {
      for (;;) {
        const { done, value } = await execution.next()
        if (done) return yield* this.#endStream(value)
        const step = stepEvent(value)
        if (step) events.append(tenant, step)
        if (value.type === 'step_ended') metrics.countDivided('plan_steps', outcomeOf(value.status))
        yield value
      }
    } catch (cause) {
      log.warn('a plan could not be recorded; it goes on when the store is back', { plan_id: plan.plan_id, cause })
      return yield* this.#endStream('lost')
    }
  }

  /** Ends the stream of a plan that another executor continues: its readers then follow it there. */
  async *#endStream(outcome: PlanOutcome): AsyncGenerator<RunEvent, PlanOutcome, undefined> {
    if (outcome === 'given_back') yield errorEvent('worker_draining', 'the executor has given the plan back')
    if (outcome === 'lost') yield errorEvent('worker_lost', 'the executor has lost the plan')
    return outcome
  }
}

/** Cancelling a run cancels its plan; any other end of the run only stops this executor's work on it. */
function splitSignal(signal: AbortSignal): { cancelled: AbortSignal; stopped: AbortSignal } {
  const [cancelled, stopped] = [new AbortController(), new AbortController()]
  const abort = () => (signal.reason === 'cancelled' ? cancelled : stopped).abort()
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  return { cancelled: cancelled.signal, stopped: stopped.signal }
}

function stepEvent(event: PlanEvent): TenantEvent | undefined {
  if (event.type !== 'step_started' && event.type !== 'step_ended') return undefined
  const { plan_id, step_id } = event
  const status = event.type === 'step_started' ? 'running' : event.status
  return { type: 'plan.step', at: now(), data: { plan_id, step_id, status } }
}

const outcomeOf = (status: string): 'done' | 'failed' | 'skipped' =>
  status === 'done' || status === 'failed' ? status : 'skipped'

const now = (): string => new Date().toISOString()

/** The job of a plan that has ended. It is listed as failed when the plan has failed. */
function endOf({ plan_id: id, status, states }: PlanRecord): JobEnd | undefined {
  if (status !== 'failed') return undefined
  const failed = states.findIndex((state) => state.status === 'failed')
  return { failed: failed < 0 ? `${id} failed` : `${id} failed: step ${failed + 1}` }
}
