import { Steering } from '../../agent/engine/messages/steering.ts'
import type { RunStatus, RunSummary } from '../../cluster/commands/runs.ts'
import type { FrameCursor } from '../../cluster/journal/frame-stream.ts'
import type { Journal } from '../../cluster/journal/journal.ts'
import { type Batched, eachOf } from '../../kernel/async/batch.ts'
import type { LoopBudget } from '../../kernel/async/loop-budget.ts'
import { errorEvent, isTerminal, type RunErrorCode, type RunEvent, type RunTotals } from '../../kernel/events.ts'
import { inSpan } from '../../kernel/trace.ts'
import { OpenAsks, waitsForClient } from './open-asks.ts'
import { outcomeOf } from './run-figures.ts'
import { RunGate } from './run-gate.ts'
import {
  attributesOf,
  type CancelCode,
  type EarlierEvents,
  RunFacts,
  type RunIdentity,
  spanNameOf,
} from './run-identity.ts'
import type { ReportableRun, RunReport } from './run-report.ts'
import { RunState } from './run-state.ts'

export type RunHooks = {
  /** Called when the engine has thrown, or has ended without a terminal event. */
  onBug(run: Pick<RunIdentity, 'id'>, cause: unknown): void
  /** Called after each event that was appended to a journal. */
  onEvent(): void
  /** Called when a run is created. The returned report gets each event of the run. */
  report?(run: ReportableRun): RunReport
  /** Called when the execution of a run begins. */
  onStarted?(run: Run): void
  /** Called when a run begins to wait for a permission. */
  onWaiting?(run: Run): void
  /** Called when a run has ended, with its terminal event. */
  onEnded?(run: Run, last: RunEvent): void
}

/** Produces a run's events. The reason that `signal` is aborted with is a `CancelCode`. */
export type RunExecutor = (run: Run, signal: AbortSignal) => AsyncIterable<Batched<RunEvent>>

/**
 * One run: its journal, its state, and the loop that moves the engine's events into the journal. Whether it may begin (`RunGate`) is separate from
 * its state: a run whose turn has come still waits for its client, and for its place.
 */
export class Run extends RunFacts {
  readonly journal: Journal
  /** The steering texts that people send while the run works. */
  readonly steering = new Steering()
  #abort = new AbortController()
  readonly #hooks: RunHooks
  readonly #loop: LoopBudget
  readonly #report: RunReport | undefined = undefined
  readonly #gate: RunGate
  readonly #state = new RunState()
  /** `undefined`: the run has asked for nothing yet, or has ended. */
  #asks: OpenAsks | undefined = undefined
  #hasAsked: boolean
  #deadline: NodeJS.Timeout | undefined
  #endedMs: number | undefined
  #errorCode: string | undefined
  /** Called once, when the run has ended or is refused; `undefined` after that. */
  #endListeners: (() => void)[] | undefined = []
  readonly #hasEndedBefore: boolean
  readonly #usedBefore: RunTotals | undefined
  readonly #endEarlier: EarlierEvents['end']
  /** Set while the run ends without having been executed. */
  #ending: Promise<void> | undefined

  /** The runs of a process share `loop`. */
  constructor(identity: RunIdentity, { journal, loop }: { journal: Journal; loop: LoopBudget }, hooks: RunHooks) {
    super(identity)
    this.journal = journal
    this.#hooks = hooks
    this.#loop = loop
    this.#gate = new RunGate(identity, () => this.cancel('no_room'))
    if (this.deadlineMs !== undefined) this.#deadline = this.#endAt(this.deadlineMs)
    const { earlier } = identity
    this.#usedBefore = earlier?.used
    this.#endEarlier = earlier?.end
    this.#hasAsked = earlier !== undefined
    if (earlier) journal.restore(earlier.events, earlier)
    const last = earlier?.events.at(-1)?.[1]
    this.#hasEndedBefore = journal.isEnded
    if (last && journal.isEnded) {
      this.#end(last) // Another process has reported the end.
      this.#tellEnded()
    } else {
      const { id, tenant, sessionId, kind, startedAt } = this
      this.#report = hooks.report?.({ id, tenant, sessionId, kind, startedAt, about: identity.about })
    }
    if (earlier) this.#report?.restore?.(earlier)
  }

  get status(): RunStatus {
    return this.#state.status
  }

  get isEnded(): boolean {
    return this.#state.isEnded
  }

  get endedAt(): Date | undefined {
    return this.#endedMs === undefined ? undefined : new Date(this.#endedMs)
  }

  /** Resolves when the run has ended, or is refused. */
  get ended(): Promise<void> {
    return new Promise((resolve) => this.whenEnded(resolve))
  }

  /** Calls `listener` when `ended` resolves. Each run has two or three of these, which need no promise. */
  whenEnded(listener: () => void): void {
    if (this.#endListeners) this.#endListeners.push(listener)
    else listener()
  }

  #tellEnded(): void {
    const listeners = this.#endListeners ?? []
    this.#endListeners = undefined
    for (const listener of listeners) listener()
  }

  /** Whether the run may have had permission requests, here or in an earlier process. */
  get hasAsked(): boolean {
    return this.#hasAsked || this.#asks !== undefined
  }

  /** Whether the record of the run is stored. */
  get isRecorded(): boolean {
    return this.#report?.isRecorded ?? this.#hasEndedBefore
  }

  /** Whether later readers find the events in the stored record. */
  get isReplayable(): boolean {
    return this.#report?.isReplayable ?? this.#hasEndedBefore
  }

  /** Whether clients find everything about the run in its stored record. */
  get isRecordedWhole(): boolean {
    return this.#report?.isRecordedWhole ?? false
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  get summary(): RunSummary {
    return {
      ...this.#report?.details,
      run_id: this.id,
      status: this.status,
      started_at: this.startedAt.toISOString(),
      ended_at: this.endedAt?.toISOString() ?? null,
      event_count: this.journal.lastSeq,
    }
  }

  /** The summary, with the phases, the open permission requests and the number of readers. Lists of runs leave these out. */
  get description(): RunSummary {
    const { phases = [], request } = this.#report ?? {}
    const [asked, calls] = [this.#asks?.ids ?? [], this.#asks?.calls ?? []]
    const { standing } = this.#gate
    return {
      ...this.summary,
      ...(request && { request }),
      ...(phases.length > 0 && { phases }),
      ...(asked.length > 0 && { permission_ids: asked }),
      ...(calls.length > 0 && { tool_call_ids: calls }),
      ...(!this.isEnded && { readers: this.journal.readerCount }),
      ...(standing && { place: standing.place, expected_start: standing.expectedStart?.toISOString() ?? null }),
    }
  }

  /** Reads the journal after event number `seq`. */
  follow(seq: number): FrameCursor {
    return this.journal.follow(seq)
  }

  /** Call it when the client knows of the run, so that the run may begin. */
  accept(): void {
    this.#gate.accept()
  }

  /** Resolves when the run has a place among its tenant's running runs, or never will; `undefined` when it does not wait for a place. */
  get placed(): Promise<void> | undefined {
    return this.#gate.placed
  }

  /** Whether no client has the run yet. */
  get isHeld(): boolean {
    return this.#gate.isHeld
  }

  /** Removes a run that was reported to its client as not accepted: it ends without a record. Returns `false` if a client has the run. */
  refuse(): boolean {
    if (!this.isHeld || this.isEnded || this.isAbandoned) return false
    this.abandon()
    this.#tellEnded()
    return true
  }

  /** Another process continues the run. What still happens to it here has no effect. */
  abandon(): void {
    this.#state.abandon()
    clearTimeout(this.#deadline)
    this.#gate.leaveLine()
    this.#abort.abort('worker_lost' satisfies CancelCode)
    this.accept()
    this.journal.abandon()
    this.#report?.abandon()
  }

  get isAbandoned(): boolean {
    return this.#state.isAbandoned
  }

  /** Resolves when the run may begin, or never will. */
  async whenAccepted(): Promise<void> {
    await this.#gate.accepted
  }

  /** Counts the run as waiting until `decision` settles, and returns it. */
  async waitFor<T>(decision: Promise<T>): Promise<T> {
    if (this.#state.beginAsk()) this.#hooks.onWaiting?.(this)
    this.#asks ??= new OpenAsks()
    return this.#asks.waitFor(decision).finally(() => this.#state.endAsk())
  }

  /** Aborted when a later message of the session denies all permission requests of the run, including later ones (D39.1). */
  get superseded(): AbortSignal {
    this.#asks ??= new OpenAsks()
    return this.#asks.superseded
  }

  supersede(): void {
    this.#asks ??= new OpenAsks()
    this.#asks.supersede()
  }

  /** Resolves when no permission request of the run is open, which is soon after a cancel. */
  async asksDecided(): Promise<void> {
    await this.#asks?.decided()
  }

  /** Runs to the terminal event, as soon as the run is accepted; never rejects. Does nothing when the run was cancelled earlier. */
  async execute(execute: RunExecutor): Promise<void> {
    if (this.isHeld) await this.#gate.accepted
    if (this.placed) await this.placed
    if (this.isEnded || this.isAbandoned || this.#ending) return this.#ending
    this.#state.begin()
    this.#hooks.onStarted?.(this)
    if (this.deadlineMs !== undefined && this.deadlineMs <= Date.now()) this.cancel('timeout')
    try {
      await inSpan(
        spanNameOf(this),
        () => ({ attributes: attributesOf(this) }),
        (fail) => this.#record(execute, fail),
      )
      if (!this.journal.isEnded && !this.isAbandoned) throw new Error('the engine ended without a terminal event')
    } catch (cause) {
      this.#hooks.onBug(this, cause)
      this.#abort.abort('internal' satisfies RunErrorCode) // The rest of the run stops, and its requests are withdrawn.
      await this.asksDecided()
      if (!this.journal.isEnded) this.#append(errorEvent('internal', 'internal error'))
    }
  }

  /** Ends the run: at once when it has not started, otherwise as soon as the engine has stopped. */
  cancel(code: CancelCode): void {
    const by = this.#state.cancel(this.#endEarlier !== undefined)
    if (by === undefined) return
    this.#abort.abort(code)
    this.accept()
    if (by === 'caller') this.#hooks.onStarted?.(this) // Otherwise the end of the run would be announced without its start (D16.1).
    const last = code === 'no_room' ? this.#gate.noRoom() : errorEvent(code, 'the run was ended before its turn came')
    if (this.#endEarlier) this.#endWith(this.#endEarlier(), by === 'caller' ? last : undefined)
    else if (by === 'caller') this.#append(last)
  }

  #endAt(deadlineMs: number): NodeJS.Timeout {
    return setTimeout(() => this.cancel('timeout'), Math.max(0, deadlineMs - Date.now())).unref()
  }

  /** Without `last` the engine ends it. */
  #endWith(withdrawn: Promise<readonly RunEvent[]>, last: RunEvent | undefined): void {
    this.#asks ??= new OpenAsks()
    if (last) this.#ending = this.#asks.waitFor(this.#endLate(withdrawn, last))
    else void this.#asks.waitFor(withdrawn)
  }

  async #endLate(withdrawn: Promise<readonly RunEvent[]>, last: RunEvent): Promise<void> {
    for (const event of await withdrawn) this.#append(event)
    this.#append(last)
  }

  #end(last: RunEvent): void {
    this.#state.end(outcomeOf(last))
    this.#gate.leaveLine()
    this.#endedMs = Date.now()
    clearTimeout(this.#deadline)
    this.#abort = NOTHING_TO_ABORT
    this.#hasAsked = this.hasAsked
    this.#asks = undefined
    this.steering.forget()
  }

  async #record(execute: RunExecutor, fail: (code: string) => void): Promise<void> {
    const { signal } = this.#abort
    for await (const batch of execute(this, signal)) {
      const turn = this.#loop.enter()
      if (turn) await turn
      for (const event of eachOf(batch)) {
        this.#append(event)
        if (this.journal.isBackpressured) await this.journal.waitForDrain(signal)
      }
    }
    if (this.#errorCode !== undefined) fail(this.#errorCode)
  }

  /** The end of the run resolves the permission requests that its executor left open (D37.1). */
  #append(given: RunEvent): void {
    if (isTerminal(given)) for (const decision of this.#asks?.take() ?? []) this.#append(decision)
    if (this.isAbandoned) return
    if (given.type === 'permission_request' || waitsForClient(given)) this.#asks ??= new OpenAsks()
    this.#asks?.note(given)
    // An error that the engine did not send has no totals of its own.
    const event = given.type === 'error' ? { ...this.#usedBefore, ...given } : given
    const appended = this.journal.append(event)
    this.#hooks.onEvent()
    this.#report?.note(event, appended)
    if (!appended.isLast) return
    if (event.type === 'error') this.#errorCode = event.code
    this.#end(event)
    this.#hooks.onEnded?.(this, event)
    this.#tellEnded()
  }
}

/**
 * The controller of every run that has ended. An ended run is kept for its readers, who need only its frames. The listeners of its
 * own signal would keep the request, the conversation and the answers in memory.
 */
const NOTHING_TO_ABORT = new AbortController()
NOTHING_TO_ABORT.abort('cancelled' satisfies CancelCode)
