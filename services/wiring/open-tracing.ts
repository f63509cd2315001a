import type { Log } from '../../shared/kernel/log.ts'
import type { Closer } from '../../shared/kernel/shutdown.ts'
import { recordSpansWith } from '../../shared/kernel/trace.ts'

type Env = Readonly<Record<string, string | undefined>>

/** The time to export the last seconds' spans. */
const CLOSE_MS = 5_000

/**
 * Exports traces if OpenTelemetry's usual variables are set. Returns a function that closes the export, or nothing if they are not set.
 * The packages are loaded only then: they cost 25 MB.
 */
export async function openTracing(env: Env, role: string, log: Log): Promise<Closer[]> {
  if (!wantsTraces(env)) return []
  const { openOtelRecorder } = await import('../../shared/platform/tracing/otel.ts')
  const { recorder, close } = await openOtelRecorder({
    serviceName: `agent-engine-${role}`,
    protocol: env['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] ?? env['OTEL_EXPORTER_OTLP_PROTOCOL'] ?? 'http/protobuf',
    onProblem: (message) => log.warn('traces cannot be exported', { detail: message }),
  })
  recordSpansWith(recorder)
  return [{ name: 'traces', deadlineMs: CLOSE_MS, close }]
}

function wantsTraces(env: Env): boolean {
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || env['OTEL_TRACES_EXPORTER'] === 'none') return false
  return Boolean(env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] || env['OTEL_EXPORTER_OTLP_ENDPOINT'])
}
