import { Steering } from '../../agent/engine/messages/steering.ts'
import type { RunStatus, RunSummary } from '../../cluster/commands/runs.ts'
import type { FrameCursor } from '../../cluster/journal/frame-stream.ts'
import type { Journal } from '../../cluster/journal/journal.ts'
import { type Batched, eachOf } from '../../kernel/async/batch.ts'
import type { LoopBudget } from '../../kernel/async/loop-budget.ts'
import { errorEvent, isTerminal, type RunErrorCode, type RunEvent, type RunTotals } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { type Attributes, inSpan } from '../../kernel/trace.ts'
import type { StartWait } from '../../tenancy/limits/start-lines.ts'
import { OpenAsks, waitsForClient } from './open-asks.ts'
import { outcomeOf } from './run-figures.ts'
import type { CancelCode, EarlierEvents, RunAbout, RunIdentity, RunKind } from './run-identity.ts'
import type { ReportableRun, RunReport } from './run-report.ts'
import { RunState } from './run-state.ts'

export type RunHooks = {
  /** Called when the engine has thrown, or has ended without a terminal event. */
  onBug(run: Pick<RunIdentity, 'id'>, cause: unknown): void
  /** Called after each event that was appended to a journal. */
  onEvent(): void
  /** Called when a run begins to exist. The report it returns gets each of the run's events. */
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
 * One run: its journal, its state, and the loop that moves the engine's events into the journal. Whether its client has it (`accept`) is apart
 * from its state: a run whose turn has come waits for that.
 */
export class Run {
  readonly id: string
  readonly tenant: TenantId
  readonly sessionId: string | undefined
  readonly kind: RunKind
  readonly workspace: string
  readonly needsNoReader: boolean
  /** The caller's own pairs. */
  readonly metadata: RunAbout['metadata']
  readonly startedAt: Date
  /** When it ends with `timeout`, in milliseconds since 1970; `undefined`: it may take any time. */
  readonly deadlineMs: number | undefined
  readonly journal: Journal
  readonly ended: Promise<void>
  /** What people tell it while it is at work. */
  readonly steering = new Steering()
  #abort = new AbortController()
  readonly #hooks: RunHooks
  readonly #loop: LoopBudget
  readonly #report: RunReport | undefined = undefined
  #held: PromiseWithResolvers<void> | undefined
  #waiting: { wait: StartWait; isOver: PromiseWithResolvers<void> } | undefined
  readonly #state = new RunState()
  /** `undefined`: it has not asked, or it has ended. */
  #asks: OpenAsks | undefined = undefined
  #deadline: NodeJS.Timeout | undefined
  #endedMs: number | undefined
  #errorCode: string | undefined
  /** Made for the first of its requests for permission. */
  #superseded: AbortController | undefined = undefined
  #resolveEnded: (() => void) | undefined
  readonly #hasEndedBefore: boolean
  readonly #usedBefore: RunTotals | undefined
  readonly #endEarlier: EarlierEvents['end']
  /** Set while it ends without having been executed. */
  #ending: Promise<void> | undefined

  /** `loop` is shared by the runs of a process. */
  constructor(identity: RunIdentity, { journal, loop }: { journal: Journal; loop: LoopBudget }, hooks: RunHooks) {
    this.id = identity.id
    this.tenant = identity.tenant
    this.sessionId = identity.sessionId
    this.workspace = identity.workspace ?? identity.id
    this.startedAt = identity.startedAt ?? new Date()
    this.needsNoReader = identity.needsNoReader ?? false
    this.metadata = identity.about?.metadata
    const { deadline_at: deadline } = identity.about ?? {}
    this.deadlineMs = deadline === undefined ? undefined : Date.parse(deadline)
    this.journal = journal
    this.#hooks = hooks
    this.#loop = loop
    this.kind = identity.kind ?? (identity.sessionId === undefined ? 'run' : 'message')
    if (identity.isHeld) this.#held = Promise.withResolvers()
    if (identity.wait) this.#waitInLine(identity.wait)
    if (this.deadlineMs !== undefined) this.#deadline = this.#endAt(this.deadlineMs)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    this.#resolveEnded = resolve
    const { earlier } = identity
    this.#usedBefore = earlier?.used
    this.#endEarlier = earlier?.end
    if (earlier) journal.restore(earlier.events, earlier)
    const last = earlier?.events.at(-1)?.[1]
    this.#hasEndedBefore = journal.isEnded
    if (last && journal.isEnded)
      this.#end(last) // Another process has reported it.
    else this.#report = hooks.report?.({ ...identity, kind: this.kind, startedAt: this.startedAt })
    if (earlier) this.#report?.restore?.(earlier)
  }

  /** The session's id, or this run's own when it has no session: the first id of a permission reply's path (D4.1). */
  get scopeId(): string {
    return this.sessionId ?? this.id
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

  /** Whether its record is stored, so that it is found there. */
  get isRecorded(): boolean {
    return this.#report?.isRecorded ?? this.#hasEndedBefore
  }

  /** Whether readers that are to come find its events in its record. */
  get isReplayable(): boolean {
    return this.#report?.isReplayable ?? this.#hasEndedBefore
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

  /** The summary, with the phases, the permission requests that it waits for and the number of its readers, which lists of runs leave out. */
  get description(): RunSummary {
    const { phases = [], request } = this.#report ?? {}
    const [asked, calls] = [this.#asks?.ids ?? [], this.#asks?.calls ?? []]
    const { standing } = this.#waiting?.wait ?? {}
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

  /** Its client knows of the run, so it may begin. */
  accept(): void {
    this.#held?.resolve()
    this.#held = undefined
  }

  /** Resolves when it has its place among the runs of its tenant, or never will; `undefined` when it does not wait for one. */
  get placed(): Promise<void> | undefined {
    return this.#waiting?.isOver.promise
  }

  /** Whether no client has the run as yet. */
  get isHeld(): boolean {
    return this.#held !== undefined
  }

  /** Its client was told that the run was not accepted: it ends as if it had never been. Returns `false` for one that a client has. */
  refuse(): boolean {
    if (!this.isHeld || this.isEnded || this.isAbandoned) return false
    this.abandon()
    this.#resolveEnded?.()
    this.#resolveEnded = undefined
    return true
  }

  /** Another process goes on with the run. What is left of it here has no effect any more. */
  abandon(): void {
    this.#state.abandon()
    clearTimeout(this.#deadline)
    this.#leaveLine()
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
    await this.#held?.promise
  }

  /** Counts the run as waiting until `decision` settles, and returns it. */
  async waitFor<T>(decision: Promise<T>): Promise<T> {
    if (this.#state.beginAsk()) this.#hooks.onWaiting?.(this)
    this.#asks ??= new OpenAsks()
    return this.#asks.waitFor(decision).finally(() => this.#state.endAsk())
  }

  /** Aborted when a later message of its session denies its permission requests, those that are still to come included (D39.1). */
  get superseded(): AbortSignal {
    this.#superseded ??= new AbortController()
    return this.#superseded.signal
  }

  supersede(): void {
    this.#superseded ??= new AbortController()
    this.#superseded.abort()
  }

  /** Resolves when none of its permission requests waits: soon after the run was cancelled. */
  async asksDecided(): Promise<void> {
    await this.#asks?.decided()
  }

  /** Runs to the terminal event, as soon as it is accepted; never rejects. Does nothing when the run was cancelled before. */
  async execute(execute: RunExecutor): Promise<void> {
    if (this.#held) await this.#held.promise
    if (this.placed) await this.placed
    if (this.isEnded || this.isAbandoned || this.#ending) return this.#ending
    this.#state.begin()
    this.#hooks.onStarted?.(this)
    if (this.deadlineMs !== undefined && this.deadlineMs <= Date.now()) this.cancel('timeout')
    try {
      await inSpan(SPANS[this.kind], { attributes: this.#attributes }, async (fail) => {
        await this.#record(execute(this, this.#abort.signal), this.#abort.signal)
        if (this.#errorCode !== undefined) fail(this.#errorCode)
      })
      if (!this.journal.isEnded && !this.isAbandoned) throw new Error('the engine ended without a terminal event')
    } catch (cause) {
      this.#hooks.onBug(this, cause)
      this.#abort.abort('internal' satisfies RunErrorCode) // What is left of it stops, and its requests are withdrawn.
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
    if (by === 'caller') this.#hooks.onStarted?.(this) // Its end was announced without its begin otherwise (D16.1).
    const last = code === 'no_room' ? this.#noRoom() : errorEvent(code, 'the run was ended before its turn came')
    if (this.#endEarlier) this.#endWith(this.#endEarlier(), by === 'caller' ? last : undefined)
    else if (by === 'caller') this.#append(last)
  }

  #endAt(deadlineMs: number): NodeJS.Timeout {
    return setTimeout(() => this.cancel('timeout'), Math.max(0, deadlineMs - Date.now())).unref()
  }

  #waitInLine(wait: StartWait): void {
    this.#waiting = { wait, isOver: Promise.withResolvers() }
    void wait.turn.then((how) => (how === 'placed' ? this.#leaveLine() : this.cancel('no_room')))
  }

  #leaveLine(): void {
    this.#waiting?.wait.leave()
    this.#waiting?.isOver.resolve()
    this.#waiting = undefined
  }

  #noRoom(): RunEvent {
    const retry_after_secs = this.#waiting?.wait.retryAfterSecs
    const last = errorEvent('no_room', 'no run of this tenant has ended in time to make room for this one')
    return { ...last, ...(retry_after_secs !== undefined && { retry_after_secs }) }
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
    this.#leaveLine()
    this.#endedMs = Date.now()
    clearTimeout(this.#deadline)
    this.#abort = NOTHING_TO_ABORT
    this.#asks = undefined
    this.#superseded = undefined
    this.steering.forget()
    this.#resolveEnded?.()
    this.#resolveEnded = undefined
  }

  get #attributes(): Attributes {
    const isAgent = SPANS[this.kind] === SPANS.run
    return {
      'agent_engine.run_id': this.id,
      'agent_engine.tenant': this.tenant,
      'gen_ai.conversation.id': this.sessionId,
      ...prefixed('agent_engine.metadata.', this.metadata),
      ...(isAgent && { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'agent-engine' }),
    }
  }

  async #record(events: AsyncIterable<Batched<RunEvent>>, signal: AbortSignal): Promise<void> {
    for await (const batch of events) {
      const turn = this.#loop.enter()
      if (turn) await turn
      for (const event of eachOf(batch)) {
        this.#append(event)
        if (this.journal.isBackpressured) await this.journal.waitForDrain(signal)
      }
    }
  }

  /** The end of the run resolves the permission requests that its executor has left open (D37.1). */
  #append(given: RunEvent): void {
    if (isTerminal(given)) for (const decision of this.#asks?.take() ?? []) this.#append(decision)
    if (this.isAbandoned) return
    if (given.type === 'permission_request' || waitsForClient(given)) this.#asks ??= new OpenAsks()
    this.#asks?.note(given)
    const event = given.type === 'error' ? { ...this.#usedBefore, ...given } : given // An end that the engine has not sent has no totals.
    const appended = this.journal.append(event)
    this.#hooks.onEvent()
    this.#report?.note(event, appended)
    if (!appended.isLast) return
    if (event.type === 'error') this.#errorCode = event.code
    this.#end(event)
    this.#hooks.onEnded?.(this, event)
  }
}

const prefixed = (prefix: string, pairs: RunAbout['metadata'] = {}): Attributes =>
  Object.fromEntries(Object.entries(pairs).map(([key, value]) => [prefix + key, value]))

const SPANS = { run: 'invoke_agent', message: 'invoke_agent', flow: 'execute_flow', plan: 'execute_plan' } as const

/**
 * The controller of every run that has ended. Such a run is kept for its readers, who need its frames only: what listens to its own
 * signal holds the request, the conversation and the answers.
 */
const NOTHING_TO_ABORT = new AbortController()
NOTHING_TO_ABORT.abort('cancelled' satisfies CancelCode)
