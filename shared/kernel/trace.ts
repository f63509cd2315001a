import { AsyncLocalStorage } from 'node:async_hooks'

/** A span in its trace: 32 and 16 hex digits (W3C Trace Context). */
export type SpanContext = { traceId: string; spanId: string; isSampled: boolean }

export type Attributes = Readonly<Record<string, string | number | boolean | string[] | undefined>>

export type SpanOptions = { kind?: 'internal' | 'server' | 'client'; attributes?: Attributes }

/** A span that is being recorded. */
export interface RecordedSpan {
  readonly context: SpanContext
  set(attributes: Attributes): void
  rename(name: string): void
  /** `errorType` marks the span as failed: an error code, never a message. */
  end(errorType?: string): void
}

/** Records spans. Without one, all functions here do nothing but pass on the request id. */
export interface SpanRecorder {
  start(name: string, options: SpanOptions & { parent: SpanContext | undefined }): RecordedSpan
}

/** The part of a trace that goes to another process with a call or a job. `subject` is the caller's (D3.5). */
export type TraceLink = { traceparent?: string; request_id?: string; subject?: string }

/** The request, caller and span to which the running code belongs. */
type Ambient = { requestId: string | undefined; subject: string | undefined; span: SpanContext | undefined }

const NOTHING: Ambient = { requestId: undefined, subject: undefined, span: undefined }

const ambient = new AsyncLocalStorage<Ambient>()
let recorder: SpanRecorder | undefined

/** Called once, when the process starts. `undefined` switches the recording off again. */
export function recordSpansWith(next: SpanRecorder | undefined): void {
  recorder = next
}

/** Runs `work`, and everything that it starts, for the request, caller and span of the link. A span of an invalid form is ignored. */
export function linked<T>(link: TraceLink | undefined, work: () => T): T {
  if (!link) return work()
  const { request_id: requestId, subject, traceparent } = link
  return ambient.run({ requestId, subject, span: readTraceparent(traceparent) }, work)
}

/** The link of the running code; `undefined` outside of requests. */
export function currentLink(): TraceLink | undefined {
  const { requestId, subject, span } = ambient.getStore() ?? NOTHING
  if (requestId === undefined && subject === undefined && !span) return undefined
  return {
    ...(span && { traceparent: `00-${span.traceId}-${span.spanId}-0${Number(span.isSampled)}` }),
    ...(requestId !== undefined && { request_id: requestId }),
    ...(subject !== undefined && { subject }),
  }
}

/** The fields that identify a request in the log lines of all processes, and its caller. */
export function traceFields(): {
  request_id?: string
  subject?: string
  otel_trace_id?: string
  otel_span_id?: string
} {
  const { requestId, subject, span } = ambient.getStore() ?? NOTHING
  return {
    ...(requestId !== undefined && { request_id: requestId }),
    ...(subject !== undefined && { subject }),
    ...(span && { otel_trace_id: span.traceId, otel_span_id: span.spanId }),
  }
}

/** Starts a child span of the running code's span. `undefined` when nothing is recorded. */
export const startSpan = (name: string, options: SpanOptions = {}): RecordedSpan | undefined =>
  recorder?.start(name, { ...options, parent: ambient.getStore()?.span })

/** Runs `work`, and everything that it starts, for the caller who was identified: a request has one caller, from here on. */
export function forSubject<T>(subject: string, work: () => T): T {
  const ofRequest = ambient.getStore()
  if (!ofRequest) return ambient.run({ ...NOTHING, subject }, work)
  ofRequest.subject = subject
  return work()
}

/** Runs `work` within the span. */
export function withinSpan<T>(span: RecordedSpan | undefined, work: () => T): T {
  return span ? ambient.run({ ...(ambient.getStore() ?? NOTHING), span: span.context }, work) : work()
}

type Fail = (errorType: string) => void

const NOT_RECORDED: Fail = () => {}

/** Runs `work` in a new span, which ends with it. `fail` marks the span as failed. */
export function inSpan<T>(
  name: string,
  options: SpanOptions | (() => SpanOptions),
  work: (fail: Fail) => Promise<T>,
): Promise<T> {
  if (!recorder) return work(NOT_RECORDED)
  const span = startSpan(name, typeof options === 'function' ? options() : options)
  return span ? workInSpan(span, work) : work(NOT_RECORDED)
}

async function workInSpan<T>(span: RecordedSpan, work: (fail: Fail) => Promise<T>): Promise<T> {
  let errorType: string | undefined
  const fail = (type: string) => {
    errorType = type
  }
  try {
    return await withinSpan(span, () => work(fail))
  } catch (cause) {
    errorType ??= cause instanceof Error ? cause.name : 'error'
    throw cause
  } finally {
    span.end(errorType)
  }
}

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/

function readTraceparent(text: string | undefined): SpanContext | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(text ?? '') ?? []
  if (!traceId || !spanId || !flags || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}
