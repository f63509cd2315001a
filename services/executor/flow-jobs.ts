import type { ItemAnswers } from '../../shared/agent/providers/batch/answered-calls.ts'
import type { BatchCall } from '../../shared/agent/providers/batch/port.ts'
import type { CallKeeper } from '../../shared/agent/tools/recorded-calls.ts'
import type { Announce } from '../../shared/cluster/relay/worker/executor.ts'
import { withDeadline } from '../../shared/kernel/async/deadline.ts'
import { retryUntil } from '../../shared/kernel/async/retry.ts'
import { toAppError } from '../../shared/kernel/errors.ts'
import type { FlowEvent } from '../../shared/kernel/events.ts'
import { runIdOf } from '../../shared/kernel/ids.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Admission } from '../../shared/tenancy/limits/admission.ts'
import { BATCH_ITEMS } from '../../shared/tenancy/limits/start-order.ts'
import type { FlowExecution, FlowOutcome } from '../../shared/work/flows/execute/execute.ts'
import { refusalOf, terminalEvent } from '../../shared/work/flows/execute/outcome.ts'
import type { FlowMemory } from '../../shared/work/flows/flow-memory.ts'
import type { Dispatch, Dispatches, FlowRef } from '../../shared/work/flows/port.ts'
import { failed, isEnded, isUnhurried, mayBeginAgain, numbersBefore } from '../../shared/work/flows/transitions.ts'
import type { Job, JobEnd } from '../../shared/work/queue/port.ts'
import type { CancelCode } from '../../shared/work/runs/run-identity.ts'
import type { Runs } from '../../shared/work/runs/runs.ts'
import { FlowEnds, type FlowEndsDeps, jobEndOf } from './flow-ends.ts'
import { FlowPreparation, type FlowPreparationDeps } from './flow-preparation.ts'
import { GIVEN_BACK, retryJobs, type Settled, type UntilEnded } from './job-ends.ts'

/** Executes a flow for a tenant; the outcome is its last value. */
export type ExecuteFlow = (
  tenant: TenantId,
  execution: FlowExecution,
  signal: AbortSignal,
) => AsyncGenerator<FlowEvent, FlowOutcome, undefined>

export type FlowJobsDeps = FlowEndsDeps &
  FlowPreparationDeps & {
    runs: Pick<Runs, 'open'>
    /** Holds the place of a flow among its tenant's concurrent runs. */
    admission: Pick<Admission, 'hold'>
    dispatches: Dispatches
    memory: Pick<FlowMemory, 'promptText' | 'remember'>
    execute: ExecuteFlow
    /** A rehearsal needs nothing any more that its tools keep running. */
    leave?(tenant: TenantId, runId: string): void
    announce: Announce
    /** Aborted when this process shuts down. */
    draining: AbortSignal
  }

const EVOLVE_MS = 2_000
/** How often the store is tried again for executions that no client waits for. */
const RETRY_MS = 500

/** The reason for the cancel of a run whose process shuts down. */
const LEAVING: CancelCode = 'worker_draining'
/** A run that is left to another process has no end in this one. */
const NEVER = Promise.withResolvers<void>().promise

/** An item of a batch that is rehearsed. */
export type Rehearsal = Pick<FlowExecution, 'input' | 'route' | 'fallback'> & {
  item: ItemAnswers
  flow: FlowRef
  /** Keeps the calls of its tools. */
  keeper: CallKeeper
}

/** `execution` is missing when it could not be prepared. */
type Executed = { outcome: FlowOutcome; execution: FlowExecution | undefined }

/** The jobs that execute flows: each claims its dispatch, executes it as a run, and records how it ended. */
export class FlowJobs {
  readonly #deps: FlowJobsDeps
  readonly #untilEnded: UntilEnded
  readonly #preparation: FlowPreparation
  readonly #ends: FlowEnds
  /** The answers of vendors' batches for executions that begin in this process, by dispatch id. */
  readonly answers = new Map<string, ItemAnswers['answers']>()

  constructor(deps: FlowJobsDeps) {
    this.#deps = deps
    this.#preparation = new FlowPreparation(deps)
    this.#ends = new FlowEnds(deps)
    this.#untilEnded = retryJobs((id, cause) => {
      deps.log.debug('a flow cannot be executed or ended at the moment', { trace_id: id, cause })
    })
  }

  /**
   * The model calls that an item of a batch would make next, given the answers so far; none when it would end, and `undefined` while another process
   * executes one of its tool calls. No model is called. New tool calls are executed and kept; then the item is rehearsed again with their results.
   */
  async rehearse(tenant: TenantId, { item, flow, keeper, ...call }: Rehearsal): Promise<BatchCall[] | undefined> {
    const { traceId, answers: kept } = item
    const prepared = await this.#preparation.flow(tenant, flow)
    for (;;) {
      const missing: BatchCall[] = []
      const calls = this.#preparation.recordedCalls(traceId, kept, keeper)
      const execution = { ...call, ...prepared, traceId, answers: { ...item, missing }, calls }
      const events = this.#deps.execute(tenant, execution, new AbortController().signal)
      while (!(await events.next()).done);
      await calls.settled().finally(() => calls.made > 0 && this.#deps.leave?.(tenant, runIdOf(traceId)))
      if (calls.isElsewhere) return undefined
      if (calls.made === 0) return missing
    }
  }

  /** Resolves when the dispatch has ended, here or elsewhere. Never rejects. */
  handle(job: Job): Promise<JobEnd | undefined> {
    return this.#untilEnded(job, (tenant, id) => this.#advance(tenant, id, job.reader))
  }

  /** Ends a dispatch whose executors have died each time. */
  async givenUp({ tenant, id }: Job): Promise<JobEnd | undefined> {
    const dispatch = await this.#deps.dispatches.get(tenant, id)
    if (!dispatch) return undefined
    return (await this.#ends.endBy(tenant, dispatch, { type: 'given_up' })) ?? jobEndOf(dispatch)
  }

  /** Executes the dispatch if no process has. Throws when the store is away. */
  async #advance(tenant: TenantId, id: string, reader: Job['reader']): Promise<Settled> {
    const { dispatches, epoch } = this.#deps
    const begun = await dispatches.begin(tenant, id, epoch())
    return begun ? this.#run(tenant, begun, reader) : this.#settle(tenant, id)
  }

  /** Executes a dispatch that this process has claimed. Its job goes back to the queue when a shutdown leaves it to another process. */
  async #run(tenant: TenantId, dispatch: Dispatch, reader?: Job['reader']): Promise<Settled> {
    const { runs, admission, announce } = this.#deps
    const { kind, idempotency_key: key, deadline_at } = dispatch
    const hasTime = isUnhurried(dispatch)
    const metadata = kind === 'batch' && { metadata: { batch_id: key ?? '' } }
    const about = { trace_id: dispatch.trace_id, flow: dispatch.flow.name, deadline_at, ...metadata }
    const reserved = numbersBefore(dispatch)
    const earlier = reserved > 0 ? { events: [], from: 1, reserved } : undefined
    const identity = { id: runIdOf(dispatch.trace_id), tenant, sessionId: undefined, kind: 'flow' as const, about }
    const run = runs.open({ ...identity, ...(earlier && { earlier }), needsNoReader: hasTime })
    admission.hold({ tenant, runId: run.id, ...(hasTime && { customer: BATCH_ITEMS }) }, run)
    announce(run, reader)
    const left = Promise.withResolvers<typeof GIVEN_BACK>()
    const leave = () => left.resolve(GIVEN_BACK)
    const ended = run.execute((_run, signal) => this.#perform(tenant, dispatch, { signal, leave }))
    return Promise.race([ended.then(() => this.#settle(tenant, dispatch.trace_id)), left.promise])
  }

  async *#perform(
    tenant: TenantId,
    dispatch: Dispatch,
    { signal, leave }: { signal: AbortSignal; leave: () => void },
  ): AsyncGenerator<FlowEvent, void, undefined> {
    const { outcome, execution } = yield* this.#execute(tenant, dispatch, signal)
    if (signal.reason === LEAVING && (await this.#mayBeginElsewhere(tenant, dispatch))) {
      leave()
      return await NEVER
    }
    const { status, served_instance, error, turns, input_tokens, output_tokens, cost_usd, ...rest } = outcome
    const { cache_read_tokens = 0, cache_write_tokens = 0, ...output } = rest
    const used = { turns, input_tokens, output_tokens, cost_usd, cache_read_tokens, cache_write_tokens }
    const result = { status, served_instance, error, ...used }
    const ended = await this.#ends.record(tenant, dispatch, {
      result,
      output,
      isLeaving: () => signal.reason === LEAVING,
    })
    if (ended.status === 'ok' && execution) await this.#evolve(tenant, { dispatch, execution, output: output.output })
    yield terminalEvent({ ...ended, ...used }, output) // Also when the end is not recorded.
  }

  /** Whether another process may begin the execution again (D34.2), as if this one had died. If so, a shutdown leaves the execution to it. */
  async #mayBeginElsewhere(tenant: TenantId, { trace_id }: Dispatch): Promise<boolean> {
    const stored = await this.#deps.dispatches.get(tenant, trace_id).catch(() => undefined)
    return stored !== undefined && mayBeginAgain(stored)
  }

  /** Every failure is an outcome. */
  async *#execute(
    tenant: TenantId,
    dispatch: Dispatch,
    signal: AbortSignal,
  ): AsyncGenerator<FlowEvent, Executed, undefined> {
    try {
      const mayPass = (cause: unknown) => toAppError(cause).code === 'storage_unavailable' && !signal.aborted
      const prepare = () => this.#preparation.execution(tenant, dispatch, this.answers.get(dispatch.trace_id))
      const execution = await (isUnhurried(dispatch) ? retryUntil(prepare, { pauses: RETRY_MS, mayPass }) : prepare())
      return { outcome: yield* this.#deps.execute(tenant, execution, signal), execution }
    } catch (cause) {
      const refusal = toAppError(cause)
      if (refusal.kind === 'internal')
        this.#deps.log.error('a flow failed by a bug', { trace_id: dispatch.trace_id, cause })
      const nothing = { status: 'error' as const, raw_output: '', output: null, timeline: [] }
      return { outcome: { ...failed(dispatch, refusalOf(refusal)), ...nothing }, execution: undefined }
    }
  }

  /** Keeps a confirmed output as a precedent (api.md "Flow definition"). If this fails, the caller still gets the output. */
  async #evolve(tenant: TenantId, { dispatch, execution, output }: Confirmed): Promise<void> {
    const { flow, kind, trace_id } = dispatch
    const { definition } = execution.flow
    if (!definition.evolve || kind !== 'run') return
    try {
      const remembered = this.#deps.memory.remember(tenant, flow.uid, { input: execution.input, output })
      await withDeadline(remembered, EVOLVE_MS, () => new Error('the store is slow'))
    } catch (cause) {
      this.#deps.log.warn('the precedent of a flow was not kept', { trace_id, cause })
    }
  }

  /**
   * Returns `undefined` while the dispatch has not ended: another process executes it. A dispatch is ended here if its executor is dead, or if this
   * process began it and cannot continue it.
   */
  async #settle(tenant: TenantId, id: string): Promise<Settled> {
    const dispatch = await this.#deps.dispatches.get(tenant, id)
    if (!dispatch) return { end: undefined }
    if (isEnded(dispatch)) return { end: jobEndOf(dispatch) }
    const event = await this.#ends.lossOf(dispatch)
    const again = event?.type === 'executor_died' && (await this.#takeOver(tenant, dispatch, event))
    if (again) return this.#run(tenant, again)
    const end = event && (await this.#ends.endBy(tenant, dispatch, event))
    if (end) return { end }
    return this.#deps.draining.aborted ? GIVEN_BACK : undefined
  }

  /** Claims a dispatch of a dead executor, if it may begin again (D34.2). */
  #takeOver(
    tenant: TenantId,
    { trace_id }: Dispatch,
    { executor: from }: { executor: number },
  ): Promise<Dispatch | undefined> {
    return this.#deps.dispatches.takeOver(tenant, trace_id, { from, executor: this.#deps.epoch() })
  }
}

type Confirmed = { dispatch: Dispatch; execution: FlowExecution; output: unknown }
