import type { MessageRequest } from '../../../shared/cluster/commands/sessions.ts'
import { tooMany } from '../../../shared/kernel/errors.ts'
import type { Run, RunExecutor } from '../../../shared/work/runs/run.ts'
import type { CancelCode } from '../../../shared/work/runs/run-identity.ts'

/** How many messages may wait after the one that is being answered (D4.6). */
const MAX_WAITING = 8
const BUSY_RETRY_SECS = 5

/** A run in a session's queue. `execute` is called when all earlier runs have ended. */
export type QueuedRun = { run: Run; message: MessageRequest; execute: RunExecutor }

type State = 'idle' | 'answering' | 'finishing' | 'held' | 'leaving' | 'gone'

/**
 * The messages of a session, which are answered one at a time in order of arrival (D4.6). Between `hold` and `resume` the current run
 * continues and no other begins, so that another worker can take over the session with the waiting messages.
 *
 * | State     | Event                                                   | Next state                                      |
 * |-----------|---------------------------------------------------------|-------------------------------------------------|
 * | idle      | a message comes                                         | answering                                       |
 * | idle      | the message that waits for room among its tenant's runs has it | answering                                |
 * | idle      | `hold`                                                  | held                                            |
 * | idle      | `retire`                                                | gone                                            |
 * | answering | its run ends                                            | answering the next message; idle without one    |
 * | answering | `hold`                                                  | finishing                                       |
 * | answering | `retire`                                                | leaving                                         |
 * | finishing | its run ends                                            | held                                            |
 * | finishing | `resume`: it stays here                                 | answering                                       |
 * | finishing | `retire`                                                | leaving, without the messages that wait         |
 * | held      | `resume`: it was adopted, or no other worker takes it   | answering the next message; idle without one    |
 * | held      | `retire`: another worker has it, or it was deleted      | gone, without the messages that wait            |
 * | leaving   | its run ends                                            | leaving with the next message; gone without one |
 *
 * A message that arrives in another state than idle waits; a queue that is leaving or gone accepts none. A method that is not listed
 * for a state changes nothing. An invalid transition throws.
 */
export class MessageQueue {
  readonly #onRunEnded: () => void
  /** The waiting runs, and the current one. */
  readonly #runs = new Set<Run>()
  #waiting: QueuedRun[] = []
  #state: State = 'idle'
  /** The current run, from its beginning to its end. */
  #current: { run: Run; done: Promise<void> } | undefined

  /** `onRunEnded` is called after each of its runs. */
  constructor(onRunEnded: () => void) {
    this.#onRunEnded = onRunEnded
  }

  /** The runs that have not begun. */
  get waiting(): readonly QueuedRun[] {
    return this.#waiting.filter(({ run }) => !run.isEnded && !run.isAbandoned)
  }

  get active(): Run | undefined {
    return this.#current?.run
  }

  get isEmpty(): boolean {
    return this.#runs.size === 0
  }

  /** Whether another worker has the session now, or it was removed. */
  get isLeaving(): boolean {
    return this.#state === 'leaving' || this.#state === 'gone'
  }

  /** Whether this run waits for another worker to take over the session. */
  holds(run: Run): boolean {
    const isHeld = this.#state === 'held' || this.#state === 'finishing'
    return isHeld && this.#waiting.some((queued) => queued.run === run)
  }

  /** Throws `rate_limit` when the queue is full. */
  checkRoom(sessionId: string): void {
    if (this.#runs.size <= MAX_WAITING) return
    throw tooMany(
      `session ${sessionId} has ${MAX_WAITING} messages waiting; send this one after the next answer`,
      BUSY_RETRY_SECS,
    )
  }

  post(queued: QueuedRun): void {
    if (this.isLeaving) throw new Error(`a session that is ${this.#state} takes no message`)
    const { run, message } = queued
    if (message.if_waiting === 'deny') void supersede([...this.#runs], run)
    this.#runs.add(run)
    this.#waiting.push(queued)
    void run.ended.then(() => {
      this.#runs.delete(run)
      this.#onRunEnded()
    })
    if (this.#state === 'idle') this.#answerNext('idle')
  }

  /** Begins no further run. Resolves when the current run has ended. */
  async hold(): Promise<void> {
    if (this.#state === 'idle') this.#move('idle', 'held')
    if (this.#state === 'answering') this.#move('answering', 'finishing')
    await this.#current?.done
  }

  /** Begins runs again. */
  resume(): void {
    if (this.#state === 'finishing') this.#move('finishing', 'answering')
    if (this.#state === 'held') this.#answerNext('held')
  }

  /**
   * Called when another worker has the session, or it is being removed. Returns the messages of a held queue, which are not answered
   * here; those of an open queue are still answered.
   */
  retire(): readonly QueuedRun[] {
    if (this.#state === 'idle') this.#move('idle', 'gone')
    if (this.#state === 'answering') this.#move('answering', 'leaving')
    if (this.#state !== 'held' && this.#state !== 'finishing') return []
    const { waiting } = this
    this.#waiting = []
    this.#move(this.#state, this.#state === 'held' ? 'gone' : 'leaving')
    return waiting
  }

  /** Cancels all running and waiting runs, and resolves when they have ended. */
  async cancelAll(code: CancelCode): Promise<void> {
    const runs = [...this.#runs]
    for (const run of runs) run.cancel(code)
    await Promise.all(runs.map(({ ended }) => ended))
  }

  /** Begins the run of the next message that waits. */
  #answerNext(from: 'idle' | 'held' | 'answering' | 'leaving'): void {
    const [busy, free] = from === 'leaving' ? (['leaving', 'gone'] as const) : (['answering', 'idle'] as const)
    const placed = this.#waiting[0]?.run.placed
    if (placed) return this.#answerLater(from, placed)
    const next = this.#waiting.shift()
    this.#move(from, next ? busy : free)
    if (!next) return
    const { run, execute } = next
    // Not in this turn of the event loop, so that a run that was just posted counts as waiting.
    const done = Promise.resolve().then(() => run.execute(execute))
    this.#current = { run, done }
    void done.then(() => this.#onAnswered())
  }

  /** Waits until the next message gets a place among its tenant's runs; all later messages wait behind it. */
  #answerLater(from: 'idle' | 'held' | 'answering' | 'leaving', placed: Promise<void>): void {
    const meanwhile = from === 'leaving' ? 'leaving' : 'idle'
    this.#move(from, meanwhile)
    void placed.then(() => {
      if (this.#state === meanwhile && !this.#current) this.#answerNext(meanwhile)
    })
  }

  #onAnswered(): void {
    this.#current = undefined
    if (this.#state === 'finishing') this.#move('finishing', 'held')
    else this.#answerNext(this.#state === 'leaving' ? 'leaving' : 'answering')
  }

  #move(from: State, to: State): void {
    if (this.#state !== from) throw new Error(`a session that is ${this.#state}, not ${from}, cannot become ${to}`)
    this.#state = to
  }
}

/** Once the later run is accepted, the earlier ones stop waiting for permissions (D39.1). If it is refused nothing changes. */
async function supersede(earlier: readonly Run[], later: Run): Promise<void> {
  await later.whenAccepted()
  if (later.isAbandoned || later.isEnded) return
  for (const run of earlier) run.supersede()
}
