import type { CallOutcome, ModelHealth } from './port.ts'

/** How calls have ended: those that were answered, those that failed or were late, and how many of the last calls failed in a row. */
export type Outcomes = readonly [answered: number, failed: number, inRow: number]

const OUTCOMES: Record<CallOutcome, Outcomes> = { answered: [1, 0, 0], failed: [0, 1, 1], late: [0, 1, 0] }

/** The recent calls of one model of an instance. Times are in milliseconds of one clock. */
export type Health = {
  /** How many of the newest calls failed in a row. */
  inRow: number
  /** Each call counts for half after `HALF_MS`. */
  answered: number
  failed: number
  at: number
  /** Until when the failing model is skipped if there is another model; 0 when it does not fail. */
  restsUntil: number
  /** Until when the first call after the rest is tested, to see whether the model answers again. */
  trialUntil: number
}

export type HealthState = 'healthy' | 'unhealthy' | 'half_open'

const HALF_MS = 30_000
/** A model counts as failing after `MOST_IN_ROW` failed calls in a row (D5.5), or when `MOST_FAILED` of at least `EVIDENCE` recent calls have failed (D56). */
const MOST_IN_ROW = 3
const MOST_FAILED = 0.5
const EVIDENCE = 10
const REST_MS = 30_000

export const NO_OUTCOMES: Outcomes = [0, 0, 0]

export const newHealth = (now: number): Health => ({
  ...{ inRow: 0, answered: 0, failed: 0, at: now },
  ...{ restsUntil: 0, trialUntil: 0 },
})

const addOutcomes = (before: Outcomes, next: Outcomes): Outcomes => [
  before[0] + next[0],
  before[1] + next[1],
  rowOf(before[2], next),
]

const rowOf = (before: number, [answered, , inRow]: Outcomes): number => (answered > 0 ? inRow : before + inRow)

/** The health after these calls. `redis-rooms.ts` has the same functions in Lua, as well as `stateOf` and `beginTrial`. */
export function withOutcomes(health: Health, outcomes: Outcomes, now: number): Health {
  const [answered, failed, inRow] = outcomes
  if (answered + failed === 0) return health
  const kept = 0.5 ** (Math.max(0, now - health.at) / HALF_MS)
  const next: Health = {
    ...health,
    inRow: rowOf(health.inRow, outcomes),
    answered: health.answered * kept + answered,
    failed: health.failed * kept + failed,
    at: now,
  }
  if (health.restsUntil > now) return next
  if (health.restsUntil > 0 && answered > 0 && inRow === 0) return newHealth(now)
  return health.restsUntil > 0 || isFailing(next) ? { ...next, restsUntil: now + REST_MS, trialUntil: 0 } : next
}

const isFailing = (health: Health): boolean =>
  health.inRow >= MOST_IN_ROW || (health.answered + health.failed >= EVIDENCE && errorRate(health) >= MOST_FAILED)

export const errorRate = ({ answered, failed }: Health): number => (failed === 0 ? 0 : failed / (answered + failed))

/** `half_open`: the next call finds out whether the model answers again. */
export function stateOf({ restsUntil, trialUntil }: Health, now: number): HealthState {
  if (restsUntil === 0) return 'healthy'
  return now < restsUntil || now < trialUntil ? 'unhealthy' : 'half_open'
}

export const beginTrial = (health: Health, now: number): Health => ({ ...health, trialUntil: now + REST_MS })

/** The health of a model as one process knows it. */
export class KnownHealth implements ModelHealth {
  #health = newHealth(0)
  #untold = NO_OUTCOMES
  #hasNews = false

  get health(): Health {
    return this.#health
  }

  /** Whether there is news that other processes should get soon: failures, or that the model answers again. */
  get hasNews(): boolean {
    return this.#hasNews || this.#health.restsUntil > 0
  }

  stateOf(now: number): HealthState {
    return stateOf(this.#health, now)
  }

  rests(now: number): boolean {
    return this.stateOf(now) === 'unhealthy'
  }

  isPassedOver(now: number): boolean | Promise<boolean> {
    const state = this.stateOf(now)
    if (state === 'half_open') this.#health = beginTrial(this.#health, now)
    return state === 'unhealthy'
  }

  note(outcome: CallOutcome, now: number): void {
    const outcomes = OUTCOMES[outcome]
    this.#hasNews ||= outcome !== 'answered' || this.#health.restsUntil > 0
    this.#untold = addOutcomes(this.#untold, outcomes)
    this.#health = withOutcomes(this.#health, outcomes, now)
  }

  /** Takes the outcomes that were not sent to other processes yet. */
  takeUntold(): Outcomes {
    const told = this.#untold
    this.#untold = NO_OUTCOMES
    this.#hasNews = false
    return told
  }

  /** Sets the health that all processes share, at time `now` of this process's clock. */
  learn(health: Health, now: number): void {
    this.#health = withOutcomes(health, this.#untold, now)
  }
}
