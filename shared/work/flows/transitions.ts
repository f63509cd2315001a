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
 * A change of an execution's record: the next record, or `undefined` where it does not apply. README.md "The record" has the table. The
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
  /** Its caller waits for its end, and reads no event before. */
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

/** The record of an execution that has just been asked for. Its instance and model are still those of the request. */
export function newDispatch(
  { kind, flow, request, subject, idempotencyKey }: Execution,
  { traceId, audit, at }: { traceId: string; audit: Audit; at: Date },
): Dispatch {
  const { deadline_hours: hours } = request
  const deadline = hours === undefined ? undefined : hoursAfter(at, hours)
  const { priority = deadline && 'batch' } = request
  // Its record outlasts it by a day.
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

/** The refusal of a start whose process may still store it: another request, or its own refusal, has taken the id. */
export const notStarted = (): AppError =>
  new AppError('unavailable', 'the run could not be started in time; send the request again', { retryAfterSecs: 1 })

/** queued -> running, under the executor of this epoch: to dispatches that agree in `BEGINS` it sets the same fields, so that no one reads them before. */
export const BEGINS = { status: 'queued' } as const
export const begunBy = (executor: number): Pick<Dispatch, 'status' | 'executor' | 'has_acted'> => ({
  status: 'running',
  executor,
  has_acted: false,
})

/** An execution that ends its executors is not begun again and again. A plan whose executors died twice is given up, too. */
const MAX_STARTS = 2
/** What no client waits for may be begun more often: it lasts long, and may see several executors die. */
const MAX_UNHURRIED_STARTS = 5

/** Whether nobody waits for it: an item of a batch, or a run that has until its deadline. */
export const isUnhurried = ({ kind, deadline_at }: Pick<Dispatch, 'kind' | 'deadline_at'>): boolean =>
  kind === 'batch' || deadline_at !== undefined

/** Whether it has time until a deadline, or had until less than a day ago: its record is kept then, however long its tenant keeps others (D54.8). */
export const isKeptByDeadline = ({ deadline_at }: Pick<Dispatch, 'deadline_at'>, nowMs: number): boolean =>
  deadline_at !== undefined && Date.parse(deadline_at) + DAY_MS > nowMs

/** The job that executes it. Executions that can wait have slots of their own. */
export const jobOf = (tenant: TenantId, { trace_id: id, deadline_at }: Dispatch): Job => ({
  kind: deadline_at === undefined ? 'flow' : 'batch',
  tenant,
  id,
})

/** Whether an execution may begin anew when its executor is dead: its client has asked for it once, and it has changed nothing (D34.2). */
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

/** The events of an execution that began anew have higher numbers than all that its client may have got. */
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

/** Whether this executor runs the execution; with `null`, whether it is queued. Nobody else ends it. */
export const isHeldBy = (dispatch: Dispatch, executor: number | null): boolean =>
  dispatch.status === (executor === null ? 'queued' : 'running') && dispatch.executor === executor

export const isEnded = ({ status }: Dispatch): boolean => status !== 'queued' && status !== 'running'

/** Whether an execution has ended without a result of its own, so that the same request may be executed again. */
export const isLost = ({ status, error }: Dispatch): boolean =>
  status === 'rejected' || error?.code === EXECUTOR_LOST.code || error?.status === 503

/** An event that can end an execution without an answer. `executor` is the epoch of the executor that runs it. */
export type LossEvent =
  /** Its job was not accepted by the queue. */
  | { type: 'not_queued'; failure: FlowFailure }
  /** It has waited for an executor for this long. */
  | { type: 'waited'; ms: number }
  /**
   * A client has cancelled it while it is queued (`null`), or while it is to begin anew because the executor of this epoch is dead. Where an executor
   * runs it, the cancel is sent to that executor, which records the end.
   */
  | { type: 'cancelled'; executor: number | null }
  /** `ms` is how long this process knows of it: another executor may begin the execution anew. */
  | { type: 'executor_died'; executor: number; ms: number }
  /** The queue gives up its job: the executors that took it have died each time. */
  | { type: 'given_up' }
  /** Its executor has done all that it can, and has not recorded the end. */
  | { type: 'not_recorded'; executor: number }

/** The end of an execution to which this event happens; `undefined` where it goes on, or has ended before. */
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
