import {
  DiagLogLevel,
  diag,
  type Attributes as OtelAttributes,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from '@opentelemetry/sdk-trace-base'
import { withDeadline } from '../../kernel/async/deadline.ts'
import type { Attributes, RecordedSpan, SpanContext, SpanRecorder } from '../../kernel/trace.ts'

export type OtelOptions = {
  /** OTEL_SERVICE_NAME replaces it. */
  serviceName: string
  /** OTEL_EXPORTER_OTLP_TRACES_PROTOCOL or OTEL_EXPORTER_OTLP_PROTOCOL; `http/json` and `http/protobuf` exist. */
  protocol: string
  /** Called when spans cannot be exported, at most once a minute. */
  onProblem(message: string): void
}

/**
 * `close` exports the spans of the last seconds. If the collector does not answer they are lost; that is reported as a
 * problem, but `close` does not fail.
 */
export type OpenedRecorder = { recorder: SpanRecorder; close(): Promise<void> }

const KINDS = { internal: SpanKind.INTERNAL, server: SpanKind.SERVER, client: SpanKind.CLIENT }
const REPEAT_MS = 60_000
const CLOSE_MS = 4_000
/** The flag of W3C Trace Context. */
const SAMPLED = 1
/** The most characters of names and values, which contain foreign names of models and tools. */
const MAX_NAME_CHARS = 256
const MAX_VALUE_CHARS = 1_024

/** Records spans with OpenTelemetry and exports them over OTLP. Its packages read the other OTEL_ variables themselves. */
export async function openOtelRecorder({ serviceName, protocol, onProblem }: OtelOptions): Promise<OpenedRecorder> {
  const report = reportTo(onProblem)
  const resource = resourceFromAttributes({ 'service.name': serviceName })
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(resource)
      .merge(detectResources({ detectors: [envDetector] })),
    spanLimits: { attributeValueLengthLimit: MAX_VALUE_CHARS },
    spanProcessors: [new BatchSpanProcessor(await openExporter(protocol))],
  })
  const tracer = provider.getTracer('agent-engine')
  const late = () => new Error('the last spans were not exported in time')
  return {
    recorder: createRecorder(tracer),
    close: () => withDeadline(provider.shutdown(), CLOSE_MS, late).catch((cause: unknown) => report(String(cause))),
  }
}

async function openExporter(protocol: string): Promise<SpanExporter> {
  const { OTLPTraceExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto')
  return new OTLPTraceExporter()
}

/** Reports the problems of the OpenTelemetry packages from now on. Returns a function that reports one. */
function reportTo(onProblem: (message: string) => void): (message: string) => void {
  let quietUntil = 0
  const report = (message: string) => {
    if (performance.now() < quietUntil) return
    quietUntil = performance.now() + REPEAT_MS
    onProblem(message)
  }
  const ignore = () => {}
  diag.setLogger(
    { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  return report
}

const createRecorder = (tracer: Tracer): SpanRecorder => ({
  start(name, { kind = 'internal', attributes = {}, parent }) {
    const context = parent ? trace.setSpanContext(ROOT_CONTEXT, remote(parent)) : ROOT_CONTEXT
    return new OtelSpan(tracer.startSpan(bounded(name), { kind: KINDS[kind], attributes: known(attributes) }, context))
  },
})

const remote = ({ traceId, spanId, isSampled }: SpanContext) => ({
  traceId,
  spanId,
  traceFlags: isSampled ? SAMPLED : 0,
})

class OtelSpan implements RecordedSpan {
  readonly context: SpanContext
  readonly #span: Span

  constructor(span: Span) {
    const { traceId, spanId, traceFlags } = span.spanContext()
    this.context = { traceId, spanId, isSampled: (traceFlags & SAMPLED) !== 0 }
    this.#span = span
  }

  set(attributes: Attributes): void {
    this.#span.setAttributes(known(attributes))
  }

  rename(name: string): void {
    this.#span.updateName(bounded(name))
  }

  end(errorType?: string): void {
    if (errorType !== undefined) {
      this.#span.setAttribute('error.type', errorType)
      this.#span.setStatus({ code: SpanStatusCode.ERROR })
    }
    this.#span.end()
  }
}

const bounded = (name: string): string => (name.length > MAX_NAME_CHARS ? `${name.slice(0, MAX_NAME_CHARS)}…` : name)

const known = (attributes: Attributes): OtelAttributes => {
  const entries = Object.entries(attributes).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries)
}
