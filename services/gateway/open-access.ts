import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'

const EVERY_MS = 3_600_000

/** Shows whether the API is open to the network without a token, and if so repeats `warning` in the log until it is closed. */
export function showOpenAccess(
  warning: string | undefined,
  { log, metrics, everyMs = EVERY_MS }: { log: Log; metrics: Metrics; everyMs?: number },
): { close(): void } {
  metrics.gauge('open_to_network', () => (warning === undefined ? 0 : 1))
  if (warning === undefined) return { close: () => {} }
  log.warn(warning)
  const timer = setInterval(() => log.warn(warning), everyMs).unref()
  return { close: () => clearInterval(timer) }
}
