import type { Schema } from '../api.ts'
import { keyOf } from '../http/key.ts'
import { Pages } from '../http/pages.ts'
import type { CallOptions, Query, Transport } from '../http/transport.ts'
import type { RunOptions } from '../run/run-stream.ts'
import { PlanHandle } from './plan-handle.ts'

/** Plans: steps with dependencies that run in the background. */
export class Plans {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Submits a plan. With a key of yours, the same plan is submitted once. */
  async submit(
    plan: Schema<'PlanRequest'>,
    { idempotencyKey, ...call }: CallOptions & Pick<RunOptions, 'idempotencyKey'> = {},
  ): Promise<PlanHandle> {
    const request = {
      method: 'POST',
      path: '/plans/submit',
      body: plan,
      idempotencyKey: keyOf(idempotencyKey),
      ...call,
    }
    const { id } = await this.#transport.json<Schema<'SubmittedPlan'>>(request)
    return this.of(id)
  }

  /** A plan that was submitted before. */
  of(id: string): PlanHandle {
    return new PlanHandle(this.#transport, id)
  }

  /** All that is wrong with a plan, and its waves. Nothing is submitted. */
  check(plan: Schema<'PlanRequest'>, options: CallOptions = {}): Promise<Schema<'PlanCheck'>> {
    return this.#transport.json({ method: 'POST', path: '/plans/check', body: plan, ...options })
  }

  list(query: Query = {}, options: CallOptions = {}): Pages<Schema<'PlanSummary'>> {
    return new Pages({ transport: this.#transport, path: '/plans', field: 'plans', query, options })
  }
}
