import type { RunStatus } from '../../cluster/commands/runs.ts'

export type Outcome = Extract<RunStatus, 'done' | 'failed' | 'cancelled'>
type State = 'queued' | 'running' | 'stopping' | 'abandoned' | Outcome

/**
 * The state of a run.
 *
 * | State     | Shown as                                    | Event                                | Next state                |
 * |-----------|---------------------------------------------|--------------------------------------|---------------------------|
 * | queued    | waiting                                     | its turn has come                    | running                   |
 * | queued    |                                             | it is cancelled                      | cancelled, or failed      |
 * | queued    |                                             | it is cancelled, and must wait       | stopping                  |
 * | queued    |                                             | another process goes on with it      | abandoned                 |
 * | queued    |                                             | its client was told that it is refused | abandoned               |
 * | running   | running; waiting while it asks a permission | it is cancelled: the engine stops    | stopping                  |
 * | running   |                                             | the engine's last event, or its bug  | done, failed or cancelled |
 * | running   |                                             | another process goes on with it      | abandoned                 |
 * | stopping  | as running                                  | the engine's last event, or its bug  | done, failed or cancelled |
 * | stopping  |                                             | another process goes on with it      | abandoned                 |
 * | abandoned | waiting; nobody finds it here any more      |                                      |                           |
 *
 * The code of a cancel decides whether the run counts as failed. A run that has ended or was abandoned can be neither executed nor
 * cancelled. A wrong move throws.
 */
export class RunState {
  #now: State = 'queued'
  #openAsks = 0

  get status(): RunStatus {
    if (isOutcome(this.#now)) return this.#now
    return this.#isExecuting && this.#openAsks === 0 ? 'running' : 'waiting'
  }

  get isEnded(): boolean {
    return isOutcome(this.#now)
  }

  get isAbandoned(): boolean {
    return this.#now === 'abandoned'
  }

  begin(): void {
    this.#move(['queued'], 'running')
  }

  /** Returns who must end the run: the engine, or the caller (at once, unless the run `mustWait`). `undefined`: it has ended or is ending. */
  cancel(mustWait = false): 'engine' | 'caller' | undefined {
    if (this.#now === 'queued' && mustWait) this.#move(['queued'], 'stopping')
    else if (this.#now !== 'queued') return this.#stop()
    return 'caller'
  }

  #stop(): 'engine' | undefined {
    if (this.#now !== 'running') return undefined
    this.#move(['running'], 'stopping')
    return 'engine'
  }

  end(outcome: Outcome): void {
    this.#move(['queued', 'running', 'stopping'], outcome)
  }

  abandon(): void {
    this.#move(['queued', 'running', 'stopping'], 'abandoned')
  }

  /** Returns whether no other permission request is open. */
  beginAsk(): boolean {
    return ++this.#openAsks === 1
  }

  endAsk(): void {
    this.#openAsks--
  }

  get #isExecuting(): boolean {
    return this.#now === 'running' || this.#now === 'stopping'
  }

  #move(from: readonly State[], to: State): void {
    if (!from.includes(this.#now)) throw new Error(`a run that is ${this.#now} cannot become ${to}`)
    this.#now = to
  }
}

const isOutcome = (state: State): state is Outcome => state === 'done' || state === 'failed' || state === 'cancelled'
