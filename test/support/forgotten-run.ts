import type { Product } from './product.ts'
import { until } from './until.ts'

/** A look restarts the time after which a run is forgotten, which is RUN_RESUME_SECS of 1 s. */
const EVERY_MS = 1_200

/** Resolves when no process knows the run any more, so that its record is all there is of it, or nothing without a store. */
export async function runIsForgotten(product: Pick<Product, 'call'>, runId: string | null): Promise<void> {
  const isForgotten = async () => {
    const { status, text } = await product.call('GET', `/runs/${runId}/events`)
    return status === 404 || text.includes(': recorded without deltas') || text.includes('"code":"stream_gap"')
  }
  await until(isForgotten, { what: `the run ${runId} to be forgotten`, everyMs: EVERY_MS })
}
