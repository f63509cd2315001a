import { HealthProber, type Probed } from '../../scripts/bench/health-prober.ts'
import { quantile } from '../../scripts/bench/statistics.ts'
import { type Guarantee, none } from './guarantee.ts'
import type { Product } from './product.ts'

const HEALTH_P99_MS = 100
const NEW_CONNECTION_EVERY_MS = 200

/** Measurements over one kept connection, and over a new connection for each request. */
export type Health = { kept: Probed; fresh: Probed }

/** Requests /health at fixed times until it is stopped. */
export function probeHealth({ port }: Product): { stop(): Promise<Health> } {
  const kept = new HealthProber(port)
  const fresh = new HealthProber(port, { everyMs: NEW_CONNECTION_EVERY_MS, isFresh: true })
  return { stop: async () => ({ kept: await kept.stop(), fresh: await fresh.stop() }) }
}

export function healthGuarantees({ kept, fresh }: Health): Guarantee[] {
  return [
    latencyGuarantee('/health p99 under attack', kept),
    latencyGuarantee('/health p99 under attack, new connections', fresh),
    none('/health not answered', kept.failures + fresh.failures),
  ]
}

function latencyGuarantee(title: string, { times }: Probed): Guarantee {
  const detail = `median ${quantile(times, 0.5).toFixed(1)}, longest ${Math.max(...times).toFixed(0)} ms of ${times.length}`
  return { title, value: quantile(times, 0.99), unit: ' ms', goal: { atMost: HEALTH_P99_MS }, detail }
}
