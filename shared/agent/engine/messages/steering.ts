import { conflict, tooMany } from '../../../kernel/errors.ts'
import type { RunErrorCode, Steer } from '../../../kernel/events.ts'
import type { Message } from '../../providers/port.ts'

/** How many texts may wait for the model's next call; the same limit as for waiting messages of a session (D4.6). */
export const MAX_WAITING_STEERS = 8
const RETRY_SECS = 5

/** The state from another process: the texts that it received, and the turns in which the model has read the first of them. */
export type SteeringState = { steers: readonly KnownSteer[]; turns: readonly number[] }

/** The text is left out once the turn that has read it is complete, because the history has it. */
export type KnownSteer = Omit<Steer, 'text'> & Partial<Pick<Steer, 'text'>>

/** The texts that people send to a running run, in order: each reaches the model once, before its next answer (D49). */
export class Steering {
  #steers: KnownSteer[] = []
  /** The turns in which the model has read the first of the texts. */
  #turns: number[] = []
  #isClosed = false
  /** How many of the texts were given to the store. */
  #given = 0

  /** Restores the texts that an earlier process of the run has received. */
  restore({ steers, turns }: SteeringState): void {
    this.#steers = [...steers]
    this.#turns = [...turns]
    this.#given = steers.length
  }

  /** Throws `conflict` after the last answer, and `rate_limit` while too many texts wait. Adding the same text again changes nothing. */
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

  /** How many additional turns the run gets, so that its model can read these texts. */
  get turnCount(): number {
    const read = this.#turns.length === 0 ? 0 : new Set(this.#turns).size
    return read + (this.isWaiting ? 1 : 0)
  }

  /** Takes the texts that the model reads in this turn. */
  take(turn: number): Steer[] {
    const taken = this.#waiting
    for (const _ of taken) this.#turns.push(turn)
    return taken
  }

  /** The texts that were already taken for this turn. */
  takenIn(turn: number): Steer[] {
    return this.#steers.filter((steer, i): steer is Steer => this.#turns[i] === turn && isWhole(steer))
  }

  /** Called when the last answer is complete: no more texts are accepted. Returns `false` when one still waits, so that the run continues. */
  close(): boolean {
    this.#isClosed ||= !this.isWaiting
    return this.#isClosed
  }

  /**
   * Called when the run ends before the model could read the waiting texts. They stay in the history, like its prompt,
   * unless another process continues the run.
   */
  leave({ aborted, reason }: AbortSignal, turn: number): Message[] {
    if (aborted && reason === ('worker_lost' satisfies RunErrorCode)) return []
    this.#isClosed = true
    return this.take(turn).map(steerMessage)
  }

  get all(): readonly KnownSteer[] {
    return this.#steers
  }

  /** The turns in which the model has read the first of the texts. */
  get turns(): readonly number[] {
    return this.#turns
  }

  /** The texts that are not stored yet, or all of them. Those read in the first `turns` turns are given by id only. */
  toStore(isAll: boolean, turns: number): readonly KnownSteer[] {
    const from = isAll ? 0 : this.#given
    this.#given = this.#steers.length
    return this.#steers
      .slice(from)
      .map((steer, i) => ((this.#turns[from + i] ?? Infinity) <= turns ? { id: steer.id } : steer))
  }

  /** Forgets the texts when the run has ended. */
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
