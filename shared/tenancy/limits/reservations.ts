import type { TenantId } from '../../kernel/tenant.ts'
import type { BudgetRefusal } from './budgets.ts'
import type { Payer, Standing } from './periods.ts'
import type { Spent } from './port.ts'
import { type Reservation, type ReservationsDeps, TenantHolds } from './tenant-holds.ts'

type Reserved = Reservation | BudgetRefusal

/** An unused reservation is freed, and spending is reported, at most this much later. */
const TIDY_EVERY_MS = 1_000

/**
 * Reserves what each model call may cost of the budgets of its tenant and its customer, and settles it when the call has ended: the calls
 * of all processes together exceed a budget by no more than an estimate is wrong (D11.2). A call without room waits for running ones to
 * end.
 */
export class Reservations {
  readonly #deps: ReservationsDeps
  readonly #tenants = new Map<TenantId, TenantHolds>()
  readonly #timer: NodeJS.Timeout

  constructor(deps: ReservationsDeps) {
    this.#deps = deps
    this.#timer = setInterval(() => this.#tidy(), TIDY_EVERY_MS).unref()
  }

  /**
   * Calls `most` only where the payer has a budget. A call that is aborted while it waits gets a reservation at once, and then ends by itself.
   * Returns no promise if there is known to be no budget.
   */
  reserve(payer: Payer, most: () => Spent, signal: AbortSignal): Reserved | Promise<Reserved> {
    const standings = this.#deps.budgets.standings(payer)
    const asked = (found: Standing[] | BudgetRefusal) => this.#reserve(found, { payer, most }, signal)
    return standings instanceof Promise ? standings.then(asked) : asked(standings)
  }

  #reserve(
    standings: Standing[] | BudgetRefusal,
    { payer, most }: { payer: Payer; most: () => Spent },
    signal: AbortSignal,
  ): Reserved | Promise<Reserved> {
    if ('code' in standings) return standings
    const { budgets } = this.#deps
    if (standings.length === 0)
      return { settle: (spent) => void (spent.tokens > 0 && budgets.spend(payer.tenant, spent)) }
    const holds = this.#tenants.get(payer.tenant) ?? new TenantHolds(payer.tenant, this.#deps)
    this.#tenants.set(payer.tenant, holds)
    return holds.reserve({ payer, most: most(), standings }, signal)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #tidy(): void {
    for (const [tenant, holds] of this.#tenants) {
      holds.tidy()
      if (holds.isEmpty) this.#tenants.delete(tenant)
    }
  }
}
