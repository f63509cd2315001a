import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../kernel/log.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { BudgetRefusal, Budgets, Standing } from './budgets.ts'
import { addSpent, type BudgetHolds, HOLD_MS, type HoldAnswer, lessSpent, NOTHING_SPENT, type Spent } from './port.ts'

export type ReservationsDeps = {
  budgets: Pick<Budgets, 'standing' | 'exhausted' | 'spend'>
  holds: BudgetHolds
  log: Log
  waitMs?: number
}

/** A model call that may begin. `settle` says, once, what it has cost. */
export type Reservation = { settle(spent: Spent): void }

/** A call that finds no room waits so long for others to end. */
const WAIT_MS = 60_000
/** Calls of other processes end without a notice. */
const LOOK_EVERY_MS = 500
/** What is held beyond the calls at work, in calls: the next ones begin without a request to the holds. */
const RESERVED_CALLS = 8
/** A hold that nobody uses is given back, and what was spent is told, at most so much later. */
const TIDY_EVERY_MS = 1_000

/**
 * Reserves what each model call of a tenant with a budget may cost, and settles it when the call has ended: the calls of all processes
 * together exceed a budget by no more than an estimate is wrong (D11.2). A call for which there is no room waits for those at work.
 */
export class Reservations {
  readonly #deps: ReservationsDeps
  readonly #holds = new Map<string, DayHold>()
  readonly #timer: NodeJS.Timeout

  constructor(deps: ReservationsDeps) {
    this.#deps = deps
    this.#timer = setInterval(() => this.#tidy(), TIDY_EVERY_MS).unref()
  }

  /** `most` is read where there is a budget. A call that is aborted while it waits is let go on, to end by itself. */
  async reserve(tenant: TenantId, most: () => Spent, signal: AbortSignal): Promise<Reservation | BudgetRefusal> {
    const standing = await this.#deps.budgets.standing(tenant)
    if (standing && 'code' in standing) return standing
    if (!standing) return { settle: (spent) => void (spent.tokens > 0 && this.#deps.budgets.spend(tenant, spent)) }
    const key = `${standing.day} ${tenant}`
    const hold = this.#holds.get(key) ?? new DayHold(tenant, standing.day, this.#deps)
    this.#holds.set(key, hold)
    return hold.reserve(most(), signal)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #tidy(): void {
    for (const [key, hold] of this.#holds) {
      if (hold.isEmpty) this.#holds.delete(key)
      else hold.tidy()
    }
  }
}

type Waiting = { most: Spent; resolve(answer: Reservation | BudgetRefusal): void; until: number }

/** What this process holds back of one tenant's day: for its calls at work, for what it has not told yet, and for calls to come. */
class DayHold {
  readonly #tenant: TenantId
  readonly #day: string
  readonly #deps: ReservationsDeps
  /** Names this hold among those of the other processes. */
  readonly #id = randomUUID()
  readonly #queue: Waiting[] = []
  #held = NOTHING_SPENT
  #atWork = NOTHING_SPENT
  #spent = NOTHING_SPENT
  #told = { spent: NOTHING_SPENT, at: 0 }
  #isAsking = false
  #isUsed = false
  #settled = Promise.withResolvers<void>()

  constructor(tenant: TenantId, day: string, deps: ReservationsDeps) {
    this.#tenant = tenant
    this.#day = day
    this.#deps = deps
  }

  get isEmpty(): boolean {
    return this.#queue.length === 0 && this.#held.tokens === 0 && this.#atWork.tokens === 0 && !this.#isAsking
  }

  reserve(most: Spent, signal: AbortSignal): Promise<Reservation | BudgetRefusal> {
    this.#isUsed = true
    return new Promise((resolve): void => {
      const leave = () => this.#begin(call)
      const call: Waiting = {
        most,
        until: performance.now() + (this.#deps.waitMs ?? WAIT_MS),
        resolve(answer) {
          signal.removeEventListener('abort', leave) // The signal is that of the run, which makes many calls.
          resolve(answer)
        },
      }
      this.#queue.push(call)
      if (signal.aborted) return leave()
      signal.addEventListener('abort', leave, { once: true })
      void this.#serve()
    })
  }

  /** Gives back what no call has used lately, and renews what calls at work need. */
  tidy(): void {
    const isOld = performance.now() - this.#told.at > HOLD_MS / 3
    if (!this.#isAsking && (isOld || !this.#isUsed)) void this.#tell()
    this.#isUsed = false
  }

  /** Lets the calls of the queue begin in their order. */
  async #serve(): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    for (let call = this.#queue[0]; call; call = this.#queue[0])
      if (fits(call.most, this.#free())) this.#begin(call)
      else await this.#askFor(call)
    this.#isAsking = false
  }

  async #askFor(call: Waiting): Promise<void> {
    const settled = this.#settled.promise
    const standing = await this.#deps.budgets.standing(this.#tenant)
    if (!this.#queue.includes(call)) return
    if (!standing) return this.#begin(call)
    if ('code' in standing) return this.#answer(call, standing)
    const { granted, spent } = await this.#ask(standing, call.most)
    if (!this.#queue.includes(call)) return // It was aborted meanwhile.
    if (granted === 'reserve' || granted === 'next') return this.#begin(call)
    const refusal = this.#deps.budgets.exhausted(standing, spent)
    if (refusal) return this.#answer(call, refusal)
    const leftMs = call.until - performance.now()
    if (leftMs <= 0) return this.#answer(call, RESERVED)
    await Promise.race([settled, sleep(Math.min(leftMs, LOOK_EVERY_MS), undefined, { ref: false })])
  }

  async #tell(): Promise<void> {
    this.#isAsking = true
    const standing = await this.#deps.budgets.standing(this.#tenant)
    if (standing && !('code' in standing)) await this.#ask(standing, NOTHING_SPENT)
    this.#isAsking = false
    void this.#serve()
  }

  /** Tells what was spent, and asks for room for a call and for more like it. Without an answer what is known of the day decides. */
  async #ask({ limit, known }: Standing, most: Spent): Promise<HoldAnswer> {
    const [atWork, spent] = [this.#atWork, this.#spent]
    const next = addSpent(atWork, most)
    const hold = { atWork, next, reserve: addSpent(next, times(most, RESERVED_CALLS)) }
    const own = { now: spent, told: this.#told.spent }
    try {
      const answer = await this.#deps.holds.ask(this.#tenant, {
        ...{ day: this.#day, process: this.#id, own, known, limit, hold },
      })
      this.#held = hold[answer.granted === 'none' ? 'atWork' : answer.granted]
      this.#told = { spent, at: performance.now() }
      return answer
    } catch (cause) {
      this.#deps.log.debug('what other processes hold of a budget cannot be read', { cause })
      return { granted: this.#deps.budgets.exhausted({ limit }, known) ? 'none' : 'next', spent: known }
    }
  }

  /** What is held and not needed for calls at work, nor for what they have spent since it was told. */
  #free(): Spent {
    return lessSpent(this.#held, addSpent(this.#atWork, lessSpent(this.#spent, this.#told.spent)))
  }

  #begin(call: Waiting): void {
    this.#atWork = addSpent(this.#atWork, call.most)
    let isOver = false
    const settle = (spent: Spent) => {
      if (isOver) return
      isOver = true
      this.#atWork = lessSpent(this.#atWork, call.most)
      this.#spent = addSpent(this.#spent, spent)
      if (spent.tokens > 0) this.#deps.budgets.spend(this.#tenant, spent)
      this.#settled.resolve()
      this.#settled = Promise.withResolvers()
    }
    this.#answer(call, { settle })
  }

  #answer(call: Waiting, answer: Reservation | BudgetRefusal): void {
    this.#queue.splice(this.#queue.indexOf(call), 1)
    call.resolve(answer)
  }
}

const times = ({ tokens, costUsd }: Spent, count: number): Spent => ({
  tokens: tokens * count,
  costUsd: costUsd * count,
})

const fits = (one: Spent, room: Spent): boolean => one.tokens <= room.tokens && one.costUsd <= room.costUsd

const RESERVED: BudgetRefusal = {
  code: 'budget_exhausted',
  message: 'what is left of the budget is reserved by model calls at work; try again when some have ended',
  reason: 'budget_reserved',
  retryAfterSecs: 5,
}
