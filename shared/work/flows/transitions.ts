import { AppError } from '../../kernel/errors.ts'
import type { FlowFailure } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { DAY_MS, hoursAfter } from '../../kernel/time.ts'
import type { StartWait } from '../../tenancy/limits/start-lines.ts'
import type { Audit } from '../../tenancy/tenant-config/config.ts'
import type { Job } from '../queue/port.ts'
import { failureOf, refusalOf } from './execute/outcome.ts'
import type { Dispatch, DispatchEnd, DispatchKind, Flow, FlowRunRequest } from './port.ts'

/**
 * A change of an execution's record: the next record, or `undefined` if it does not apply. README.md "The record" has the table. The
 * store writes what a transition returns by compare-and-set.
 */
export type DispatchTransition = (dispatch: Dispatch) => Dispatch | undefined

/** A version of a flow to execute, for a request. */
export type Execution = {
  kind: DispatchKind
  flow: Pick<Flow, 'name' | 'uid' | 'version' | 'definition'>
  request: FlowRunRequest
  subject: string
  idempotencyKey: string | undefined
  /** Set when its caller only waits for its end, and reads no events before. */
  readsEnd?: boolean
  /** Aborted when its client has left. It then stops waiting for a place. */
  left?: AbortSignal
  /** Called when its start waits for a place. */
  onWait?: (waiting: WaitingFlow) => void
}

/** An execution whose start waits (D54.5). */
export type WaitingFlow = { traceId: string; wait: Pick<StartWait, 'standing'> }

/** How long an execution may wait for an executor. */
const MAX_QUEUED_MS = 30_000

/** The record of a newly requested execution. Its instance and model are still those in the request. */
export function newDispatch(
  { kind, flow, request, subject, idempotencyKey }: Execution,
  { traceId, audit, at }: { traceId: string; audit: Audit; at: Date },
): Dispatch {
  const { deadline_hours: hours } = request
  const deadline = hours === undefined ? undefined : hoursAfter(at, hours)
  const { priority = deadline && 'batch' } = request
  // The record is kept for at least a day after the execution.
  const expiresMs = Math.max(at.getTime() + DAY_MS * audit.retention_days, deadline ? Date.parse(deadline) + DAY_MS : 0)
  return {
    trace_id: traceId,
    kind,
    subject,
    flow: { name: flow.name, uid: flow.uid, version: flow.version },
    provider_instance: request.provider_instance,
    model: request.model ?? flow.definition.model ?? '',
    fallback: null,
    served_instance: null,
    ...(priority && { priority }),
    ...(deadline !== undefined && { deadline_at: deadline }),
    idempotency_key: idempotencyKey ?? null,
    status: 'queued',
    error: null,
    started_at: at.toISOString(),
    ended_at: null,
    duration_ms: null,
    turns: 0,
    input_tokens: 0,
    output_tokens: 0,
    cost_usd: 0,
    executor: null,
    keeps_payloads: audit.store_payloads,
    expires_at: new Date(expiresMs).toISOString(),
  }
}

/** The record of an execution that was refused before a provider was called (D6.5). */
export const rejected = (dispatch: Dispatch, refusal: AppError): Dispatch => ({
  ...dispatch,
  status: 'rejected',
  error: refusalOf(refusal),
  ended_at: dispatch.started_at,
  duration_ms: 0,
})

/** The refusal that takes the id of a start, so that the start cannot be stored later. */
export const notStarted = (): AppError =>
  new AppError('unavailable', 'the run could not be started in time; send the request again', { retryAfterSecs: 1 })

/**
 * queued -> running, under the executor of this epoch: it sets the same fields in all dispatches that match `BEGINS`,
 * so they need not be read before.
 */
export const BEGINS = { status: 'queued' } as const
export const begunBy = (executor: number): Pick<Dispatch, 'status' | 'executor' | 'has_acted'> => ({
  status: 'running',
  executor,
  has_acted: false,
})

/** An execution may be the reason why its executors die, so it is begun only this often. A plan whose executors died twice is given up, too. */
const MAX_STARTS = 2
/** An execution without a waiting client may be begun more often: it takes long, so that several executors may die meanwhile. */
const MAX_UNHURRIED_STARTS = 5

/** Whether no client waits for it: it is an item of a batch, or a run with a deadline. */
export const isUnhurried = ({ kind, deadline_at }: Pick<Dispatch, 'kind' | 'deadline_at'>): boolean =>
  kind === 'batch' || deadline_at !== undefined

/** Whether its deadline has not passed for more than a day: its record is then kept, whatever its tenant's retention (D54.8). */
export const isKeptByDeadline = ({ deadline_at }: Pick<Dispatch, 'deadline_at'>, nowMs: number): boolean =>
  deadline_at !== undefined && Date.parse(deadline_at) + DAY_MS > nowMs

/** The job that executes it. Executions with a deadline have separate slots. */
export const jobOf = (tenant: TenantId, { trace_id: id, deadline_at }: Dispatch): Job => ({
  kind: deadline_at === undefined ? 'flow' : 'batch',
  tenant,
  id,
})

/** Whether an execution may be repeated when its executor has died: it has changed nothing (D34.2). */
export const mayBeginAgain = (dispatch: Dispatch): boolean => {
  const { status, idempotency_key: key, has_acted, starts = 1 } = dispatch
  const isOnce = key !== null || isUnhurried(dispatch)
  const most = isUnhurried(dispatch) ? MAX_UNHURRIED_STARTS : MAX_STARTS
  return status === 'running' && isOnce && has_acted === false && starts < most
}

/** running under a dead executor -> running under another one. */
export const takeOver =
  ({ from, executor }: { from: number; executor: number }): DispatchTransition =>
  (dispatch) =>
    isHeldBy(dispatch, from) && mayBeginAgain(dispatch)
      ? { ...dispatch, executor, starts: (dispatch.starts ?? 1) + 1 }
      : undefined

/** Records that the executor may change something from now on. */
export const noteAction =
  (executor: number): DispatchTransition =>
  (dispatch) =>
    isHeldBy(dispatch, executor) ? { ...dispatch, has_acted: true } : undefined

const NUMBERS_OF_A_START = 1_000_000

/** The events of a repeated execution have higher numbers than all that its client may have received. */
export const numbersBefore = ({ starts = 1 }: Pick<Dispatch, 'starts'>): number => (starts - 1) * NUMBERS_OF_A_START

/** running under this executor -> ended; with `executor: null` queued -> ended. */
export const end =
  ({ executor, result, outputId, at }: Ending): DispatchTransition =>
  (dispatch) =>
    isHeldBy(dispatch, executor)
      ? {
          ...dispatch,
          ...result,
          ended_at: at.toISOString(),
          duration_ms: Math.max(0, at.getTime() - Date.parse(dispatch.started_at)),
          ...(outputId !== undefined && { output_id: outputId }),
        }
      : undefined

type Ending = { executor: number | null; result: DispatchEnd; outputId?: string | undefined; at: Date }

/** Whether this executor runs the execution; with `null`, whether it is queued. Only its holder may end it. */
export const isHeldBy = (dispatch: Dispatch, executor: number | null): boolean =>
  dispatch.status === (executor === null ? 'queued' : 'running') && dispatch.executor === executor

export const isEnded = ({ status }: Dispatch): boolean => status !== 'queued' && status !== 'running'

/** Whether an execution was lost, and has no result, so that the same request may be executed again. */
export const isLost = ({ status, error }: Dispatch): boolean =>
  status === 'rejected' || error?.code === EXECUTOR_LOST.code || error?.status === 503

/** An event that can end an execution without an answer. `executor` is the epoch of the executor that runs it. */
export type LossEvent =
  /** Its job was not accepted by the queue. */
  | { type: 'not_queued'; failure: FlowFailure }
  /** It has waited this long for an executor. */
  | { type: 'waited'; ms: number }
  /**
   * A client has cancelled it while it was queued (`null`), or before its repetition because the executor of this epoch has died. If an executor runs
   * it, the cancel is sent to that executor, which records the end.
   */
  | { type: 'cancelled'; executor: number | null }
  /** `ms` is how long this process has known that: another executor may repeat the execution. */
  | { type: 'executor_died'; executor: number; ms: number }
  /** The queue gives up its job, because every executor that took it has died. */
  | { type: 'given_up' }
  /** Its executor has finished without recording the end. */
  | { type: 'not_recorded'; executor: number }

/** The end of an execution after this event; `undefined` if it continues, or had already ended. */
export function endBy(dispatch: Dispatch, event: LossEvent): DispatchEnd | undefined {
  const failure = failureBy(dispatch, event)
  if (!failure) return undefined
  const loss = failed(dispatch, failure)
  return event.type === 'not_queued' ? { ...loss, status: 'rejected' } : loss
}

function failureBy(dispatch: Dispatch, event: LossEvent): FlowFailure | undefined {
  const isQueued = isHeldBy(dispatch, null)
  switch (event.type) {
    case 'not_queued':
      return isQueued ? event.failure : undefined
    case 'waited':
      return isQueued && !isUnhurried(dispatch) && event.ms > MAX_QUEUED_MS ? NOT_TAKEN : undefined
    case 'cancelled':
      return isHeldBy(dispatch, event.executor) && (isQueued || mayBeginAgain(dispatch)) ? CANCELLED : undefined
    case 'executor_died':
      if (mayBeginAgain(dispatch) && (isUnhurried(dispatch) || event.ms <= MAX_QUEUED_MS)) return undefined
      return isHeldBy(dispatch, event.executor) ? EXECUTOR_LOST : undefined
    case 'given_up':
      return isEnded(dispatch) ? undefined : EXECUTOR_LOST
    case 'not_recorded':
      return isHeldBy(dispatch, event.executor) ? NOT_RECORDED : undefined
  }
}

/** The end of an execution without an answer. */
export function failed(dispatch: Dispatch, error: FlowFailure): DispatchEnd {
  const { turns, input_tokens, output_tokens, cost_usd } = dispatch
  return { status: 'error', served_instance: null, error, turns, input_tokens, output_tokens, cost_usd }
}

/** The failure of an execution whose executor died. */
export const EXECUTOR_LOST: FlowFailure = {
  status: 502,
  type: 'upstream_error',
  code: 'worker_lost',
  message: 'the executor of this run was lost; send the request again',
}

const NOT_TAKEN: FlowFailure = {
  status: 503,
  type: 'unavailable_error',
  message: 'no executor had room for this run in time; try again in a moment',
}

const CANCELLED = failureOf('cancelled', 'the run was cancelled')

export const NOT_RECORDED = failureOf(
  'storage_unavailable',
  'the result of this run could not be recorded; send the request again',
)
