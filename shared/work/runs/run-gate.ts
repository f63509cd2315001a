import { errorEvent, type RunEvent } from '../../kernel/events.ts'
import type { StartWait } from '../../tenancy/limits/start-lines.ts'
import type { RunIdentity } from './run-identity.ts'

/**
 * Delays a run that was opened: until its client knows of it (D36.1), and until its tenant has a place for it (D54.4). The two conditions are
 * independent of each other and of the state of the run.
 */
export class RunGate {
  #held: PromiseWithResolvers<void> | undefined
  #waiting: { wait: StartWait; isOver: PromiseWithResolvers<void> } | undefined

  /** `onNoRoom` is called when the tenant had no place for the run in time. */
  constructor({ isHeld, wait }: Pick<RunIdentity, 'isHeld' | 'wait'>, onNoRoom: () => void) {
    if (isHeld) this.#held = Promise.withResolvers()
    if (!wait) return
    this.#waiting = { wait, isOver: Promise.withResolvers() }
    void wait.turn.then((how) => (how === 'placed' ? this.leaveLine() : onNoRoom()))
  }

  /** Whether no client has the run yet. */
  get isHeld(): boolean {
    return this.#held !== undefined
  }

  /** Its client knows of the run. */
  accept(): void {
    this.#held?.resolve()
    this.#held = undefined
  }

  /** Resolves when the client knows of the run, or never will; `undefined` when it knows already. */
  get accepted(): Promise<void> | undefined {
    return this.#held?.promise
  }

  /** Resolves when the run has a place among its tenant's running runs, or never will; `undefined` when it does not wait for a place. */
  get placed(): Promise<void> | undefined {
    return this.#waiting?.isOver.promise
  }

  /** The run's position in its tenant's queue; `undefined` when it does not wait there. */
  get standing(): StartWait['standing'] | undefined {
    return this.#waiting?.wait.standing
  }

  leaveLine(): void {
    this.#waiting?.wait.leave()
    this.#waiting?.isOver.resolve()
    this.#waiting = undefined
  }

  /** The terminal event of a run whose tenant had no place for it in time. */
  noRoom(): RunEvent {
    const retry_after_secs = this.#waiting?.wait.retryAfterSecs
    const last = errorEvent('no_room', 'no run of this tenant has ended in time to make room for this one')
    return { ...last, ...(retry_after_secs !== undefined && { retry_after_secs }) }
  }
}
