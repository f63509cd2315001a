import { conflict, tooMany } from '../../../kernel/errors.ts'
import type { RunErrorCode, Steer } from '../../../kernel/events.ts'
import type { Message } from '../../providers/port.ts'

/** What waits for the model's next call at most, as messages of a session do (D4.6). */
export const MAX_WAITING_STEERS = 8
const RETRY_SECS = 5

/** The state of another process: what it was told, and in which turn the model has read it, as far as it has. */
export type SteeringState = { steers: readonly KnownSteer[]; turns: readonly number[] }

/** Without its text once the turn that has read it is complete: the history has it. */
export type KnownSteer = Omit<Steer, 'text'> & Partial<Pick<Steer, 'text'>>

/** What people tell one run while it is at work, in order: each reaches the model once, before its next answer (D49). */
export class Steering {
  #steers: KnownSteer[] = []
  /** The turns in which the model has read the first of them. */
  #turns: number[] = []
  #isClosed = false
  /** How many the store was given. */
  #given = 0

  /** An earlier process has begun the run, and knew these. */
  restore({ steers, turns }: SteeringState): void {
    this.#steers = [...steers]
    this.#turns = [...turns]
    this.#given = steers.length
  }

  /** Throws `conflict` behind the last answer, and `rate_limit` while too many wait. The same one again changes nothing. */
  add(steer: Steer): void {
    if (this.#steers.some(({ id }) => id === steer.id)) return
    if (this.#isClosed) throw runHasEnded()
    if (this.#waiting.length >= MAX_WAITING_STEERS)
      throw tooMany(
        `${MAX_WAITING_STEERS} texts wait for the next call of the model; send this one after it`,
        RETRY_SECS,
      )
    this.#steers.push(steer)
  }

  get isWaiting(): boolean {
    return this.#turns.length < this.#steers.length
  }

  /** How many turns the run gets in addition, so that its model reads these texts. */
  get turnCount(): number {
    return new Set(this.#turns).size + (this.isWaiting ? 1 : 0)
  }

  /** Those that the model reads in this turn. */
  take(turn: number): Steer[] {
    const taken = this.#waiting
    for (const _ of taken) this.#turns.push(turn)
    return taken
  }

  /** Those that were taken for this turn before. */
  takenIn(turn: number): Steer[] {
    return this.#steers.filter((steer, i): steer is Steer => this.#turns[i] === turn && isWhole(steer))
  }

  /** The last answer is complete: nothing more is taken. Returns `false` when one waits, so that the run goes on. */
  close(): boolean {
    this.#isClosed ||= !this.isWaiting
    return this.#isClosed
  }

  /** The run ends before the model could read those that wait. They stay in the history as its prompt does, unless another process goes on. */
  leave({ aborted, reason }: AbortSignal, turn: number): Message[] {
    if (aborted && reason === ('worker_lost' satisfies RunErrorCode)) return []
    this.#isClosed = true
    return this.take(turn).map(steerMessage)
  }

  get all(): readonly KnownSteer[] {
    return this.#steers
  }

  /** The turns in which the model has read the first of them. */
  get turns(): readonly number[] {
    return this.#turns
  }

  /** Those that the store lacks, or all of them, behind `turns` complete turns. */
  toStore(isAll: boolean, turns: number): readonly KnownSteer[] {
    const from = isAll ? 0 : this.#given
    this.#given = this.#steers.length
    return this.#steers
      .slice(from)
      .map((steer, i) => ((this.#turns[from + i] ?? Infinity) <= turns ? { id: steer.id } : steer))
  }

  /** The run has ended. */
  forget(): void {
    this.#isClosed = true
    this.#steers = []
    this.#turns = []
  }

  get #waiting(): Steer[] {
    return this.#steers.slice(this.#turns.length).filter(isWhole)
  }
}

const isWhole = (steer: KnownSteer): steer is Steer => steer.text !== undefined

export const runHasEnded = () => conflict('the run has ended, or is about to: send a message, or start another run')

/** A message of the person, whose id is that of the steer. */
export const steerMessage = ({ id, text }: Steer): Message => ({ role: 'user', text, client: id })
