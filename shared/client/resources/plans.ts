import type { Schema } from '../api.ts'
import { pages } from '../http/pages.ts'
import { type Keyed, withKey } from '../http/request.ts'
import type { CallOptions, Transport } from '../http/transport.ts'
import { createPlan, type PlanHandle } from './plan-handle.ts'

export type Plans = ReturnType<typeof createPlans>

/** Plans: steps with dependencies that run in the background. */
export const createPlans = (transport: Transport) => ({
  /** Submits a plan. */
  async submit(body: Schema<'PlanRequest'>, options: CallOptions & Keyed = {}): Promise<PlanHandle> {
    const request = withKey({ ...options, body, has: 'id' })
    return createPlan(transport, (await transport.json<Schema<'Plan'>>('POST', '/plans/submit', request)).id)
  },

  /** A plan that was submitted before. */
  of: (id: string): PlanHandle => createPlan(transport, id),

  /** All problems of a plan, and its waves. Nothing is submitted. */
  check: (body: Schema<'PlanRequest'>, options?: CallOptions): Promise<Schema<'PlanCheck'>> =>
    transport.json('POST', '/plans/check', { body, ...options }),

  list: pages<Schema<'PlanSummary'>>(transport, '/plans'),
})
