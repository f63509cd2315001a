import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../kernel/log.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { BudgetRefusal, Budgets } from './budgets.ts'
import { Hold, heldBy } from './hold.ts'
import { endOf, type Payer, type Standing } from './periods.ts'
import { type BudgetHolds, type HoldAnswer, type HoldRequest, NOTHING_SPENT, type Spent } from './port.ts'

export type ReservationsDeps = {
  budgets: Pick<Budgets, 'standings' | 'exhausted' | 'spend'>
  holds: BudgetHolds
  log: Log
  waitMs?: number
}

/** A model call that may begin. Call `settle` once, with its cost. */
export type Reservation = { settle(spent: Spent): void }

/** A call that finds no room waits this long for others to end. */
const WAIT_MS = 60_000
/** For a place among the concurrent calls it waits longer, because each earlier call may take minutes. */
const WAIT_FOR_PLACE_MS = 600_000
/** How often the holds are asked again, because calls of other processes end without a notice. */
const LOOK_EVERY_MS = 500
type Waiting = {
  payer: Payer
  most: Spent
  standings: readonly Standing[]
  /** `performance.now()` at its arrival. */
  since: number
  resolve(answer: Reservation | BudgetRefusal): void
}

/** This process's reservations in the budgets of one tenant and its customers. */
export class TenantHolds {
  readonly #tenant: TenantId
  readonly #deps: ReservationsDeps
  readonly #budgets = new Map<string, Hold>()
  readonly #queue: Waiting[] = []
  /** The holds that must be reported, reduced or renewed next. */
  readonly #due = new Set<Hold>()
  #isServing = false
  #changed = Promise.withResolvers<void>()

  constructor(tenant: TenantId, deps: ReservationsDeps) {
    this.#tenant = tenant
    this.#deps = deps
  }

  get isEmpty(): boolean {
    return this.#budgets.size === 0 && this.#queue.length === 0 && !this.#isServing
  }

  reserve(
    asked: Pick<Waiting, 'payer' | 'most' | 'standings'>,
    signal: AbortSignal,
  ): Promise<Reservation | BudgetRefusal> {
    return new Promise((resolve): void => {
      const leave = () => this.#begin(call)
      const call: Waiting = {
        ...asked,
        since: performance.now(),
        resolve(answer) {
          signal.removeEventListener('abort', leave) // Removed, because the run's signal is shared by many calls.
          resolve(answer)
        },
      }
      this.#queue.push(call)
      if (signal.aborted) return leave()
      signal.addEventListener('abort', leave, { once: true })
      this.#wake()
      void this.#serve()
    })
  }

  /** Frees unused reservations, and renews those of running calls. */
  tidy(): void {
    for (const [name, hold] of this.#budgets) if (hold.isEmpty) this.#budgets.delete(name)
    this.#serveDue([...this.#budgets.values()].filter((hold) => hold.isDue()))
  }

  #serveDue(holds: readonly Hold[]): void {
    if (holds.length === 0) return
    for (const hold of holds) this.#due.add(hold)
    this.#wake()
    void this.#serve()
  }

  /** Lets the calls of the queue begin, those of each budget in their order. */
  async #serve(): Promise<void> {
    if (this.#isServing) return
    this.#isServing = true
    while (this.#queue.length > 0 || this.#due.size > 0) {
      const changed = this.#changed.promise
      const full = new Map<Hold, Lack>()
      const due = [...this.#due]
      this.#due.clear()
      await this.#tell(due)
      for (const call of [...this.#queue]) await this.#try(call, full)
      if (this.#queue.length > 0) await Promise.race([changed, sleep(this.#lookAgainMs(), undefined, UNREFERENCED)])
    }
    this.#isServing = false
  }

  /** `full`: the budgets that were found to have no room in this round. */
  async #try(call: Waiting, full: Map<Hold, Lack>): Promise<void> {
    if (!this.#queue.includes(call)) return // The call was aborted meanwhile.
    if (this.#fits(call) && !this.#holdsOf(call).some((hold) => full.has(hold))) return this.#begin(call)
    const known = this.#holdsOf(call).find((hold) => full.has(hold))
    const lack = (known && full.get(known)) ?? (await this.#askFor(call, full))
    if (!lack || !this.#queue.includes(call)) return
    const refusal = lack.refusal ?? this.#tooLate(call, lack)
    if (refusal) this.#answer(call, refusal)
  }

  /** Asks for room for a call. Returns the reason if it may not begin yet. */
  async #askFor(call: Waiting, full: Map<Hold, Lack>): Promise<Lack | undefined> {
    const standings = await this.#deps.budgets.standings(call.payer)
    if (!this.#queue.includes(call)) return undefined
    if ('code' in standings) return { granted: 'none', name: '', refusal: standings }
    call.standings = standings
    const holds = this.#holdsOf(call)
    const answers = await this.#ask(holds.map((hold, i) => hold.request(standings[i], call.most)))
    holds.forEach((hold, i) => hold.take(answers[i]))
    if (!this.#queue.includes(call)) return undefined // The call was aborted meanwhile.
    const at = answers.findIndex(({ granted }) => granted === 'lacking' || granted === 'busy' || granted === 'none')
    const [hold, standing, answer] = [holds[at], standings[at], answers[at]]
    if (!hold || !standing || !answer) {
      this.#begin(call)
      return undefined
    }
    const refusal = this.#deps.budgets.exhausted(standing, answer.spent)
    const lack = { granted: answer.granted, name: standing.name, refusal }
    full.set(hold, lack)
    return lack
  }

  async #tell(due: readonly Hold[]): Promise<void> {
    if (due.length === 0) return
    const answers = await this.#ask(due.map((hold) => hold.request(undefined, NOTHING_SPENT)))
    due.forEach((hold, i) => hold.take(answers[i]))
  }

  /** Without an answer it decides by the spending known to this process. */
  async #ask(requests: readonly HoldRequest[]): Promise<HoldAnswer[]> {
    try {
      return await this.#deps.holds.ask(this.#tenant, requests)
    } catch (cause) {
      this.#deps.log.debug('what other processes hold of a budget cannot be read', { cause })
      return requests.map(({ limit, known }) => ({ granted: isUsedUp(limit, known) ? 'none' : 'next', spent: known }))
    }
  }

  #holdsOf({ standings }: Waiting): Hold[] {
    return standings.map((standing) => {
      const hold = this.#budgets.get(standing.name) ?? new Hold(standing)
      this.#budgets.set(standing.name, hold)
      return hold
    })
  }

  #fits(call: Waiting): boolean {
    return this.#holdsOf(call).every((hold, i) => hold.hasRoom(heldBy(call.most, call.standings[i])))
  }

  #begin(call: Waiting): void {
    const holds = this.#holdsOf(call).map((hold, i) => ({ hold, most: heldBy(call.most, call.standings[i]) }))
    for (const { hold, most } of holds) hold.begin(most)
    let isOver = false
    const settle = (spent: Spent) => {
      if (isOver) return
      isOver = true
      for (const { hold, most } of holds) hold.end(most, spent)
      const ofCustomer = call.standings.flatMap(({ name, payer }) => (payer.customer === undefined ? [] : [name]))
      if (spent.tokens > 0) this.#deps.budgets.spend(this.#tenant, spent, ofCustomer)
      this.#wake()
      // At once: if others read such spending in the store before it is reported to the holds, it would be counted twice.
      this.#serveDue(holds.filter(({ most }) => isAbove(spent, most)).map(({ hold }) => hold))
    }
    this.#answer(call, { settle })
  }

  #tooLate({ since }: Waiting, { granted, name }: Lack): BudgetRefusal | undefined {
    const waitMs = this.#deps.waitMs ?? (granted === 'busy' ? WAIT_FOR_PLACE_MS : WAIT_MS)
    if (performance.now() - since < waitMs) return undefined
    return granted === 'busy' ? NO_PLACE : reserved(name)
  }

  #lookAgainMs(): number {
    return Math.min(LOOK_EVERY_MS, this.#deps.waitMs ?? LOOK_EVERY_MS)
  }

  #wake(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }

  #answer(call: Waiting, answer: Reservation | BudgetRefusal): void {
    this.#queue.splice(this.#queue.indexOf(call), 1)
    call.resolve(answer)
  }
}

const UNREFERENCED = { ref: false }

/** Why a call may not begin yet; with a `refusal` it never may. */
type Lack = { granted: HoldAnswer['granted']; name: string; refusal: BudgetRefusal | undefined }

const isAbove = (spent: Spent, most: Spent): boolean => spent.tokens > most.tokens || spent.costUsd > most.costUsd

const isUsedUp = (limit: Spent, { tokens, costUsd }: Spent): boolean =>
  tokens >= limit.tokens || costUsd >= limit.costUsd

const waitingRefusal = (message: string): BudgetRefusal => ({
  code: 'budget_exhausted',
  message,
  reason: 'budget_reserved',
  retryAfterSecs: 5,
})

const reserved = (name: string) =>
  waitingRefusal(
    `what is left of the budget is reserved by model calls at work; try again when some have ended, or when it begins anew at ${endOf(name).toISOString()}`,
  )
const NO_PLACE = waitingRefusal(
  'this tenant has as many model calls at work as it may (concurrent_model_calls); try again when some have ended',
)
