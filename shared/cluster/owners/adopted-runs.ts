import type { TenantId } from '../../kernel/tenant.ts'
import type { MovedRuns } from './owners.ts'

export type AdoptedRunsDeps = {
  movedRuns: Pick<MovedRuns, 'record'>
  /** This worker's epoch, which changes after an eviction. */
  epoch(): number
  /** Whether this worker still knows the run. */
  isKnown(tenant: TenantId, runId: string): boolean
}

/** The runs that this worker has adopted from the queues of others. It keeps their records in Redis. */
export class AdoptedRuns {
  readonly #deps: AdoptedRunsDeps
  readonly #runs = new Map<string, TenantId>()

  constructor(deps: AdoptedRunsDeps) {
    this.#deps = deps
  }

  async add(tenant: TenantId, runIds: readonly string[]): Promise<void> {
    this.#dropForgotten()
    for (const runId of runIds) this.#runs.set(runId, tenant)
    await this.#deps.movedRuns.record(tenant, runIds, this.#deps.epoch())
  }

  /** Records all runs again after Redis has lost its keys. */
  async recordAll(): Promise<void> {
    this.#dropForgotten()
    const { movedRuns, epoch } = this.#deps
    await Promise.all(Array.from(this.#runs, ([runId, tenant]) => movedRuns.record(tenant, [runId], epoch())))
  }

  #dropForgotten(): void {
    for (const [runId, tenant] of this.#runs) if (!this.#deps.isKnown(tenant, runId)) this.#runs.delete(runId)
  }
}
