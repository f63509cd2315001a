import { errorRate, KnownHealth, type Outcomes, stateOf } from '../../agent/providers/health.ts'
import type { CallOutcome } from '../../agent/providers/port.ts'
import type { Log } from '../../kernel/log.ts'
import type { RoomAnswer } from './port.ts'

type SharedHealthDeps = {
  target: { scope: string; model: string }
  log: Log
  /** Asks the rooms before the first call, and for the trial after a rest. `undefined`: they were not asked. */
  ask(isTrial: boolean): Promise<RoomAnswer | undefined> | undefined
}

const RESTS = 'a model fails: calls that have another model pass it over for a while'
const ANSWERS = 'a model that was passed over answers again'

/** The health of one model of an instance by the calls of all processes, which the shared room reports (D56). */
export class SharedHealth extends KnownHealth {
  readonly #deps: SharedHealthDeps

  constructor(deps: SharedHealthDeps) {
    super()
    this.#deps = deps
  }

  override async isPassedOver(now: number): Promise<boolean> {
    await this.#deps.ask(false)
    if (this.stateOf(now) !== 'half_open') return this.rests(now)
    const answer = await this.#deps.ask(true)
    if (!answer) return super.isPassedOver(now)
    return !answer.isTrial && stateOf(answer.health, answer.now) !== 'healthy'
  }

  override note(outcome: CallOutcome, now: number): void {
    const rested = this.rests(now)
    super.note(outcome, now)
    this.#logChange(rested, now)
  }

  /** `told`: the calls of this process that the answer includes. The times of the rooms are those of another clock. */
  learnFrom({ health, now: theirs }: RoomAnswer, told: Outcomes | undefined): void {
    const now = performance.now()
    const rested = this.rests(now)
    const here = (at: number) => (at === 0 ? 0 : at - theirs + now)
    const { at, restsUntil, trialUntil } = health
    this.learn({ ...health, at: here(at), restsUntil: here(restsUntil), trialUntil: here(trialUntil) }, now)
    if (told && told[0] + told[1] > 0) this.#logChange(rested, now)
  }

  /** Logs one line, only in the process whose calls have caused the change. */
  #logChange(rested: boolean, now: number): void {
    const { log, target } = this.#deps
    const fields = { ...target, error_rate: Number(errorRate(this.health).toFixed(2)) }
    if (!rested && this.rests(now)) log.warn(RESTS, fields)
    if (rested && this.health.restsUntil === 0) log.info(ANSWERS, fields)
  }
}
