import type { Frames } from '../../../cluster/journal/frame-stream.ts'
import { renderFrame } from '../../../cluster/journal/frames.ts'
import { AppError, type ErrorKind } from '../../../kernel/errors.ts'
import type { FlowAnswer, FlowFailure, RunErrorCode } from '../../../kernel/events.ts'
import { answerOf, failureEvent, refusalOf, terminalEvent } from '../execute/outcome.ts'
import type { Dispatch, DispatchOutput } from '../port.ts'

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
