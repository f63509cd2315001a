import type { Schema } from '../api.ts'
import { type Keyed, keyOf } from '../http/key.ts'
import { type Pages, pages } from '../http/pages.ts'
import type { CallOptions, Query, Transport } from '../http/transport.ts'
import { PlanHandle } from './plan-handle.ts'

export type Plans = ReturnType<typeof createPlans>

/** Plans: steps with dependencies that run in the background. */
export const createPlans = (transport: Transport) => ({
  /** Submits a plan. */
  async submit(body: Schema<'PlanRequest'>, options: CallOptions & Keyed = {}): Promise<PlanHandle> {
    const request = { ...options, body, idempotencyKey: keyOf(options) }
    return new PlanHandle(transport, (await transport.json<Schema<'Plan'>>('POST', '/plans/submit', request)).id)
  },

  /** A plan that was submitted before. */
  of: (id: string): PlanHandle => new PlanHandle(transport, id),

  /** All that is wrong with a plan, and its waves. Nothing is submitted. */
  check: (body: Schema<'PlanRequest'>, options?: CallOptions): Promise<Schema<'PlanCheck'>> =>
    transport.json('POST', '/plans/check', { body, ...options }),

  list: (query?: Query, options?: CallOptions): Pages<Schema<'PlanSummary'>> =>
    pages(transport, '/plans', query, options),
})
