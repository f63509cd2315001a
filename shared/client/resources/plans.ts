import type { Schema } from '../api.ts'
import { type Keyed, keyOf } from '../http/key.ts'
import { Pages } from '../http/pages.ts'
import type { CallOptions, Query, Transport } from '../http/transport.ts'
import { PlanHandle } from './plan-handle.ts'

/** Plans: steps with dependencies that run in the background. */
export class Plans {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Submits a plan. */
  async submit(plan: Schema<'PlanRequest'>, options: CallOptions & Keyed = {}): Promise<PlanHandle> {
    const request = { ...options, body: plan, idempotencyKey: keyOf(options.idempotencyKey) }
    const { id } = await this.#transport.json<Schema<'SubmittedPlan'>>('POST', '/plans/submit', request)
    return this.of(id)
  }

  /** A plan that was submitted before. */
  of(id: string): PlanHandle {
    return new PlanHandle(this.#transport, id)
  }

  /** All that is wrong with a plan, and its waves. Nothing is submitted. */
  check(plan: Schema<'PlanRequest'>, options?: CallOptions): Promise<Schema<'PlanCheck'>> {
    return this.#transport.json('POST', '/plans/check', { body: plan, ...options })
  }

  list(query?: Query, options?: CallOptions): Pages<Schema<'PlanSummary'>> {
    return new Pages(this.#transport, '/plans', { query, ...options })
  }
}
