import type { KnownExecutors } from '../../shared/cluster/members/executors.ts'
import { retryUntil } from '../../shared/kernel/async/retry.ts'
import type { FlowFailure } from '../../shared/kernel/events.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Dispatch, DispatchEnd, Dispatches, DispatchOutput } from '../../shared/work/flows/port.ts'
import {
  endBy,
  failed,
  isEnded,
  isUnhurried,
  type LossEvent,
  NOT_RECORDED,
} from '../../shared/work/flows/transitions.ts'
import type { JobEnd } from '../../shared/work/queue/port.ts'

export type FlowEndsDeps = {
  dispatches: Dispatches
  executors: Pick<KnownExecutors, 'isAlive'>
  /** This executor's epoch, under which it claims executions. */
  epoch(): number
  /** Whether this process may still act for what it has claimed. */
  isHeld(): boolean
  log: Log
}

/** The longest wait for the store at the end of an execution. After this time the client gets an error that the end could not be recorded. */
const RECORD_MS = 5_000
const RETRY_MS = 500

type Ending = { result: DispatchEnd; output: DispatchOutput; isLeaving(): boolean }

/** Records the ends of dispatches that this process has executed, and of those whose executor is lost. */
export class FlowEnds {
  readonly #deps: FlowEndsDeps

  constructor(deps: FlowEndsDeps) {
    this.#deps = deps
  }

  /**
   * Records the end, and returns the dispatch for its client: a failed one when the end could not be recorded in time. If no client waits, the end
   * may be recorded until this process shuts down.
   */
  async record(tenant: TenantId, dispatch: Dispatch, { isLeaving, ...end }: Ending): Promise<Dispatch> {
    const { dispatches, isHeld, log } = this.#deps
    const { trace_id: traceId, executor } = dispatch
    const tryEnd = () => dispatches.end(tenant, traceId, { executor, ...end, mayWrite: isHeld })
    const record = async () => {
      const ended = (await tryEnd()) ?? ((await this.#claimAgain(tenant, dispatch)) && (await tryEnd()))
      return ended || (await this.#endedElsewhere(tenant, dispatch))
    }
    const until = performance.now() + RECORD_MS
    const mayPass = () => performance.now() < until || (isUnhurried(dispatch) && !isLeaving())
    try {
      return await retryUntil(record, { pauses: RETRY_MS, mayPass })
    } catch (cause) {
      log.warn('the end of a flow could not be recorded', { trace_id: traceId, cause })
      return unrecorded(dispatch)
    }
  }

  /** Claims a dispatch again whose claim the database has lost, when one of its servers failed. Returns whether it did. */
  async #claimAgain(tenant: TenantId, { trace_id: traceId, executor }: Dispatch): Promise<boolean> {
    const { dispatches, isHeld, epoch } = this.#deps
    return isHeld() && executor === epoch() && (await dispatches.begin(tenant, traceId, executor)) !== undefined
  }

  /**
   * Another process has ended the dispatch, or may have done so, because this process could not renew its lease. If no process has,
   * this one ends it with the same failure as soon as it may act again.
   */
  async #endedElsewhere(tenant: TenantId, dispatch: Dispatch): Promise<Dispatch> {
    const stored = await this.#deps.dispatches.get(tenant, dispatch.trace_id)
    return stored && isEnded(stored) ? stored : unrecorded(dispatch)
  }

  /** Why a claimed dispatch can no longer end by itself: its executor is dead, or its executor is this process and has tried everything. */
  async lossOf({ executor }: Dispatch): Promise<LossEvent | undefined> {
    const { executors, epoch } = this.#deps
    if (executor === null) return undefined
    if (executor === epoch()) return { type: 'not_recorded', executor }
    return (await executors.isAlive(executor)) ? undefined : { type: 'executor_died', executor, ms: 0 }
  }

  /** Ends the dispatch, and returns the end of its job; `undefined` when the event does not end it. */
  async endBy(tenant: TenantId, dispatch: Dispatch, event: LossEvent): Promise<JobEnd | undefined> {
    const { trace_id: traceId, executor } = dispatch
    const result = endBy(dispatch, event)
    if (!result) return undefined
    await this.#deps.dispatches.end(tenant, traceId, { executor, result })
    return failedJob(traceId, result.error)
  }
}

/** The job of a dispatch that has ended. The job is listed as failed when the flow has failed. */
export const jobEndOf = ({ trace_id, status, error }: Dispatch): JobEnd | undefined =>
  status === 'error' ? failedJob(trace_id, error) : undefined

/** The message of a failure is left out, because it may quote a tenant's text. */
const failedJob = (traceId: string, failure: FlowFailure | null): JobEnd => ({
  failed: `${traceId} failed: ${failure?.code ?? failure?.type ?? 'error'}`,
})

/** The dispatch as its client sees it when its end is not recorded. */
const unrecorded = (dispatch: Dispatch): Dispatch => ({
  ...dispatch,
  ...failed(dispatch, NOT_RECORDED),
  ended_at: new Date().toISOString(),
})
