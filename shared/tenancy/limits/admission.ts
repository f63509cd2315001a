import { tooMany } from '../../kernel/errors.ts'
import type { Log } from '../../kernel/log.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Limits, TenantLimits } from '../tenant-config/config.ts'
import { assertBudget, type Budgets } from './budgets.ts'
import type { KnownLimits } from './known-limits.ts'
import type { Payer } from './periods.ts'
import { PLACE_MS, type RunPlaces } from './port.ts'

/** Decides whether a tenant may start a run, and holds the places of those that go on. */
export interface Admission {
  /**
   * `undefined` when the tenant has no limit that could refuse it, nor the customer. Rejects with `rate_limit` when the run may not start, and with
   * `unavailable` when that is not known.
   */
  admit(tenant: TenantId, runId: string, customer?: string): Promise<void> | undefined
  /** Holds the run's place until `ended` resolves. */
  hold(tenant: TenantId, runId: string, ended: Promise<void>): void
  /** Frees the place of a run that did not start. */
  release(tenant: TenantId, runId: string): void
  /** Stops holding a run's place without giving it back: another process has the run, and holds the place. */
  handOver(tenant: TenantId, runId: string): void
}

/** For a process without runtime configuration, in which no tenant has limits. */
export const NO_ADMISSION: Admission = { admit: () => undefined, hold: () => {}, release: () => {}, handOver: () => {} }

export type AdmissionDeps = {
  limits: Pick<KnownLimits, 'of' | 'peek'>
  budgets: Pick<Budgets, 'refusal'>
  places: RunPlaces
  log: Log
  renewEveryMs?: number
}

const RENEW_EVERY_MS = PLACE_MS / 4
const BUSY_RETRY_SECS = 5

export class RunAdmission implements Admission {
  readonly #deps: AdmissionDeps
  readonly #held = new Map<TenantId, Set<string>>()
  readonly #timer: NodeJS.Timeout

  constructor(deps: AdmissionDeps) {
    this.#deps = deps
    this.#timer = setInterval(() => this.#renew(), deps.renewEveryMs ?? RENEW_EVERY_MS).unref()
  }

  admit(tenant: TenantId, runId: string, customer?: string): Promise<void> | undefined {
    const limits = this.#deps.limits.of(tenant)
    if (!(limits instanceof Promise) && !limitsRuns(limits, customer)) return undefined
    return this.#admit({ tenant, customer }, runId, limits)
  }

  hold(tenant: TenantId, runId: string, ended: Promise<void>): void {
    if (this.#deps.limits.peek(tenant)?.concurrent_runs === null) return
    const ofTenant = this.#held.get(tenant) ?? new Set()
    this.#held.set(tenant, ofTenant.add(runId))
    this.#try(this.#deps.places.renew(tenant, [runId]))
    void ended.then(() => {
      this.handOver(tenant, runId)
      this.release(tenant, runId)
    })
  }

  handOver(tenant: TenantId, runId: string): void {
    const ofTenant = this.#held.get(tenant)
    ofTenant?.delete(runId)
    if (ofTenant?.size === 0) this.#held.delete(tenant)
  }

  release(tenant: TenantId, runId: string): void {
    this.#try(this.#deps.places.release(tenant, runId))
  }

  close(): void {
    clearInterval(this.#timer)
  }

  async #admit({ tenant, customer }: Payer, runId: string, limits: Limits | Promise<Limits>): Promise<void> {
    const { budgets, places } = this.#deps
    const { concurrent_runs: limit } = await limits
    await assertBudget(budgets, tenant, customer)
    if (limit === null || (await places.take(tenant, runId, limit))) return
    throw tooMany(`this tenant has ${limit} runs at work, its limit; try again when one has ended`, BUSY_RETRY_SECS)
  }

  #renew(): void {
    for (const [tenant, runIds] of this.#held) this.#try(this.#deps.places.renew(tenant, [...runIds]))
  }

  /** A place that could not be renewed or released is free again after a while. */
  #try(work: Promise<void>): void {
    work.catch((cause: unknown) => this.#deps.log.debug('the places of runs cannot be reached', { cause }))
  }
}

const limitsRuns = (limits: TenantLimits, customer: string | undefined): boolean =>
  limits.concurrent_runs !== null ||
  limits.tokens_per_day !== null ||
  limits.usd_per_day !== null ||
  (customer !== undefined && limits.customers !== undefined)
