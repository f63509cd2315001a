import { randomUUID } from 'node:crypto'
import type { Standing } from './periods.ts'
import {
  addHeld,
  addSpent,
  type Held,
  HOLD_MS,
  type HoldAnswer,
  type HoldRequest,
  lessHeld,
  lessSpent,
  NOTHING_HELD,
  NOTHING_SPENT,
  type Spent,
} from './port.ts'

/**
 * How many calls are reserved beyond the running ones, so that the next ones begin without a request to the holds. For
 * a busy budget: the calls of this many milliseconds.
 */
const RESERVED_CALLS = 8
const RESERVED_SECS = 3

/** The part of one budget that this process reserves: for its running calls, for unreported spending, and for future calls. */
export class Hold {
  /** Identifies it among the holds of the other processes. */
  readonly #id = randomUUID()
  #standing: Standing
  #request: HoldRequest | undefined
  #held = NOTHING_HELD
  #atWork = NOTHING_HELD
  #mostAtWork = 0
  #spent = NOTHING_SPENT
  #told = { spent: NOTHING_SPENT, at: 0 }
  #isUsed = true
  /** The calls that have begun since the last check. */
  #begun = 0
  /** How many calls begin per second; it falls by at most half at each check. */
  #perSec = 0

  constructor(standing: Standing) {
    this.#standing = standing
  }

  get isEmpty(): boolean {
    return this.#held.tokens === 0 && this.#atWork.tokens === 0 && !this.#isUsed
  }

  /** Whether the reserved amount has room for a call, beside the running calls and unreported spending. */
  hasRoom(most: Held): boolean {
    const untold = { ...lessSpent(this.#spent, this.#told.spent), calls: 0 }
    const free = lessHeld(this.#held, addHeld(this.#atWork, untold))
    return most.tokens <= free.tokens && most.costUsd <= free.costUsd && most.calls <= free.calls
  }

  /** Reports the spending, and asks for room for a call and further ones like it. */
  request(standing: Standing = this.#standing, most: Spent): HoldRequest {
    this.#standing = standing
    this.#isUsed ||= most.tokens > 0
    const next = addHeld(this.#atWork, heldBy(most, standing))
    const { tokens, costUsd } = most
    const count = Math.max(RESERVED_CALLS, RESERVED_SECS * Math.max(this.#begun, this.#perSec))
    const more = { tokens: tokens * count, costUsd: costUsd * count, calls: 0 }
    const { name, known, limit } = standing
    this.#request = {
      ...{ name, id: this.#id, known, limit, own: { now: this.#spent, told: this.#told.spent } },
      hold: { atWork: this.#atWork, next, reserve: addHeld(next, more) },
    }
    return this.#request
  }

  take(answer: HoldAnswer | undefined): void {
    if (!answer || !this.#request) return
    const { hold, own } = this.#request
    const { granted } = answer
    this.#held = granted === 'reserve' || granted === 'next' ? hold[granted] : hold.atWork
    this.#told = { spent: own.now, at: performance.now() }
  }

  begin(most: Held): void {
    this.#isUsed = true
    this.#begun++
    this.#atWork = addHeld(this.#atWork, most)
    this.#mostAtWork = Math.max(this.#mostAtWork, this.#atWork.calls)
  }

  end(most: Held, spent: Spent): void {
    this.#atWork = lessHeld(this.#atWork, most)
    this.#spent = addSpent(this.#spent, spent)
  }

  /**
   * Whether it should ask again: it reserves an amount that no call has needed since the last request, or more than
   * fewer calls need now, or it has not reported for long.
   */
  isDue(): boolean {
    const areFew = this.#begun < this.#perSec / 4
    this.#perSec = Math.max(this.#begun, this.#perSec / 2)
    this.#begun = 0
    const isOld = performance.now() - this.#told.at > HOLD_MS / 3
    const isDue = isOld || areFew || !this.#isUsed || this.#held.calls > this.#mostAtWork
    this.#isUsed = false
    this.#mostAtWork = this.#atWork.calls
    return isDue
  }
}

/** Concurrent calls are counted only if they are limited. */
export const heldBy = (most: Spent, standing: Standing | undefined): Held => ({
  tokens: most.tokens,
  costUsd: most.costUsd,
  calls: most.tokens > 0 && standing !== undefined && standing.limit.calls < Number.POSITIVE_INFINITY ? 1 : 0,
})
