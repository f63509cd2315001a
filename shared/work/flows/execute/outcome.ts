import type { Frames } from '../../../cluster/journal/frame-stream.ts'
import { renderFrame } from '../../../cluster/journal/frames.ts'
import { AppError, type ErrorKind, toErrorBody } from '../../../kernel/errors.ts'
import {
  errorEvent,
  type FlowAnswer,
  type FlowEvent,
  type FlowFailure,
  type RunErrorCode,
  type RunTotals,
  type Verdict,
} from '../../../kernel/events.ts'
import type { Dispatch, DispatchOutput } from '../port.ts'

type Totals = Pick<
  Dispatch,
  'turns' | 'input_tokens' | 'output_tokens' | 'cost_usd' | 'cache_read_tokens' | 'cache_write_tokens'
>
type Answered = Pick<Dispatch, 'trace_id' | 'flow' | 'status' | 'served_instance'>
type Payload = Pick<DispatchOutput, 'output' | 'problems' | 'artifacts'>

/** The answer of an execution that has ended as `ok` or `invalid_output`. */
export function answerOf(
  { trace_id, flow, status, served_instance }: Answered,
  { output, problems = [], artifacts }: Payload = { output: null },
): FlowAnswer {
  const verdict: Verdict = status === 'ok' ? 'ok' : 'invalid_output'
  return {
    flow_id: flow.name,
    flow_version: flow.version,
    trace_id,
    verdict,
    output: verdict === 'ok' ? output : null,
    ...(verdict === 'invalid_output' && { problems }),
    served_instance: served_instance ?? '',
    ...(artifacts && { artifacts }),
  }
}

/** The agent that failed, and the instance that it called. */
export type Place = { agent: string; instance: string }

/** The agent whose output is the flow's. */
export const MAIN_AGENT = 'main'

const UPSTREAM = { status: 502, type: 'upstream_error' }
const RATE_LIMIT = { status: 429, type: 'rate_limit_error' }
const CONFLICT = { status: 409, type: 'conflict_error' }
const UNAVAILABLE = { status: 503, type: 'unavailable_error' }
const INTERNAL = { status: 500, type: 'internal_error' }

const CLASS: Record<RunErrorCode, Pick<FlowFailure, 'status' | 'type'>> = {
  provider_auth: UPSTREAM,
  provider_rate_limited: UPSTREAM,
  provider_unavailable: UPSTREAM,
  provider_rejected: UPSTREAM,
  context_too_long: UPSTREAM,
  content_filtered: UPSTREAM,
  unsupported_attachment: { status: 400, type: 'invalid_request_error' },
  max_turns_exceeded: UPSTREAM,
  invalid_output: UPSTREAM,
  budget_exhausted: RATE_LIMIT,
  no_room: RATE_LIMIT,
  timeout: UPSTREAM,
  cancelled: CONFLICT,
  session_deleted: CONFLICT,
  worker_lost: UNAVAILABLE,
  worker_draining: UNAVAILABLE,
  slow_consumer: UNAVAILABLE,
  stream_gap: UNAVAILABLE,
  relay_unavailable: UNAVAILABLE,
  storage_unavailable: UNAVAILABLE,
  internal: INTERNAL,
}

/** The failure of an execution, with the status of its HTTP answer (api.md "Named flows" 4). A failing sub-agent is named. */
export function failureOf(code: RunErrorCode, message: string, place?: Place): FlowFailure {
  return { ...CLASS[code], message: place ? `${describe(place)}: ${message}` : message, code }
}

/** The failure of a flow whose sub-agent has used up its tries. */
export const invalidSubAgent = (place: Place, tries: number): FlowFailure => ({
  ...UPSTREAM,
  message: `${describe(place)}: its answer did not fit its output_schema in ${tries} tries`,
})

const describe = ({ agent, instance }: Place): string =>
  `${agent === MAIN_AGENT ? 'the main agent' : `sub-agent ${agent}`} failed at instance ${instance}`

/** The failure that a refusal of this service causes. */
export function refusalOf(refusal: AppError): FlowFailure {
  const { type, message, code } = toErrorBody(refusal).error
  return { status: refusal.status, type, message, ...(code !== undefined && { code }) }
}

/** A failure in the form of records and reports: the error of the JSON envelope. */
export const shownFailure = ({ type, message, code }: ShownFailure): ShownFailure => ({
  ...{ type, message },
  ...(code !== undefined && { code }),
})
export type ShownFailure = Pick<FlowFailure, 'type' | 'message' | 'code'>

/** The last event of a flow that has failed, or was refused. */
function failureEvent(failure: FlowFailure, { trace_id }: Pick<Dispatch, 'trace_id'>, at: string): FlowEvent {
  const { status, message, retry_after_secs } = failure
  const event = { ...errorEvent(eventCodeOf(failure), message), status, trace_id, at }
  return { ...event, ...(retry_after_secs !== undefined && { retry_after_secs }) }
}

/** A failure without a code of D4.8 gets one from its status. */
function eventCodeOf({ code = '', status }: FlowFailure): RunErrorCode {
  if (Object.hasOwn(CLASS, code)) return code as RunErrorCode
  if (status === 409) return 'cancelled'
  if (status < 500) return 'provider_rejected'
  if (status === 502) return 'provider_unavailable'
  return status === 503 ? 'storage_unavailable' : 'internal'
}

/** The terminal event of an execution that has ended, with what it has used. */
export function terminalEvent(dispatch: Dispatch, output: Payload | undefined): FlowEvent {
  const { error, ended_at: endedAt, started_at: startedAt } = dispatch
  const at = endedAt ?? startedAt
  if (error) return { ...failureEvent(error, dispatch, at), ...totalsOf(dispatch) }
  return withHidden({ type: 'result', ...answerOf(dispatch, output), at }, totalsOf(dispatch))
}

/**
 * The body of `result` is that of the synchronous answer (api.md Named flows 7): the totals are only for the run's
 * record, so they are hidden from JSON.
 */
function withHidden(event: FlowEvent, totals: RunTotals): FlowEvent {
  const hidden = Object.entries(totals).map(([name, value]) => [name, { value, enumerable: false }])
  return Object.defineProperties(event, Object.fromEntries(hidden))
}

const totalsOf = ({ turns, input_tokens, output_tokens, cost_usd, ...cached }: Totals): RunTotals => ({
  total_input_tokens: input_tokens,
  total_output_tokens: output_tokens,
  total_tokens: input_tokens + output_tokens,
  cost_usd,
  turn_count: turns,
  ...(cached.cache_read_tokens && { cache_read_tokens: cached.cache_read_tokens }),
  ...(cached.cache_write_tokens && { cache_write_tokens: cached.cache_write_tokens }),
})

/** The answer that an ended execution has stored. Throws its failure as an HTTP error. */
export function storedAnswer(dispatch: Dispatch, output: DispatchOutput | undefined): FlowAnswer {
  if (dispatch.error) throw errorOf(dispatch.error, dispatch.trace_id, dispatch.ended_at)
  return answerOf(dispatch, output)
}

const RESULT = '\nevent: result\ndata: '

/** The answer of the execution whose last frames these are; `undefined` when it has failed, or has not ended. */
export function answerIn({ text }: Frames): FlowAnswer | undefined {
  const frames = typeof text === 'string' ? text : Buffer.from(text).toString()
  const from = frames.lastIndexOf(RESULT) // This cannot match inside an event, where line breaks are escaped.
  if (from < 0) return undefined
  const { at: _at, ...answer } = JSON.parse(frames.slice(from + RESULT.length)) as FlowAnswer & { at: string }
  return answer
}

/** The terminal frame of an ended execution for a reader who has not received it: it repeats the number of the last frame (D4.2). */
export const terminalFrame = (dispatch: Dispatch, output: DispatchOutput | undefined, lastSeq: number): string =>
  renderFrame(lastSeq, terminalEvent(dispatch, output))

/** The last frame of a stream whose start has waited and was refused (D54.5). */
export function refusalFrame(traceId: string, refusal: AppError): string {
  const { retryAfterSecs: retry_after_secs } = refusal
  const event = failureEvent(refusalOf(refusal), { trace_id: traceId }, new Date().toISOString())
  return renderFrame(0, { ...event, ...(retry_after_secs !== undefined && { retry_after_secs }) })
}

/** Seconds after which a client may try again. */
export const RETRY_SECS = 5

/**
 * The stored failure of an execution as the error of its HTTP answer, whose `Retry-After` is shorter when a request
 * joins an ended execution later.
 */
export function errorOf(failure: FlowFailure, traceId: string, endedAt: string | null = null): AppError {
  const { status, type, message, code, retry_after_secs: secs = RETRY_SECS } = failure
  const passedSecs = endedAt === null ? 0 : (Date.now() - Date.parse(endedAt)) / 1_000
  return new AppError(type.slice(0, -'_error'.length) as ErrorKind, message, {
    status,
    traceId,
    ...(code !== undefined && { code: code as RunErrorCode }),
    ...((status === 503 || status === 429) && { retryAfterSecs: Math.max(RETRY_SECS, Math.ceil(secs - passedSecs)) }),
  })
}

/** The same refusal with the id of the refused execution (D6.5). */
export function withTrace(cause: AppError, traceId: string): AppError {
  const { kind, message, param, code, status, retryAfterSecs } = cause
  return new AppError(kind, message, {
    param,
    status,
    traceId,
    cause,
    ...(code !== undefined && { code }),
    ...(retryAfterSecs !== undefined && { retryAfterSecs }),
  })
}
