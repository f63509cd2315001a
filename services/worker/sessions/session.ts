import { seedHistory } from '../../../shared/agent/engine/messages/seed.ts'
import { isOneShotSession } from '../../../shared/agent/sessions/one-shot.ts'
import { sessionFolder } from '../../../shared/agent/tools/workspace/workspace.ts'
import type { MessageRequest, SessionSummary } from '../../../shared/cluster/commands/sessions.ts'
import type { Batched } from '../../../shared/kernel/async/batch.ts'
import { Observed } from '../../../shared/kernel/async/observed.ts'
import type { RunEvent } from '../../../shared/kernel/events.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { Run } from '../../../shared/work/runs/run.ts'
import type { CancelCode } from '../../../shared/work/runs/run-identity.ts'
import type { RunStart } from '../prepare-run.ts'
import { checkPlace } from './message-place.ts'
import { MessageQueue, type QueuedRun } from './message-queue.ts'
import { SessionContent } from './session-content.ts'
import { SessionLog } from './session-log.ts'
import type { SessionPlace } from './session-room.ts'
import { type RunsKeeper, SessionRuns } from './session-runs.ts'
import type { SessionState, WaitingMessage } from './session-state.ts'

export type SessionOptions = {
  place: SessionPlace
  /** Left out: it is never idle. */
  idleMs?: number | undefined
  /** Stores the turns of its runs. Left out: the session is in memory only. */
  keep?: KeepTurns | undefined
  /** Stores its runs, too, so that another worker can continue them. */
  keepRuns?: ((session: Session) => RunsKeeper) | undefined
  /** Called when its runs have stopped, before another worker takes over the session. */
  onHeld?: ((session: Session) => Promise<void>) | undefined
  /** Called when the session has had no run for `idleMs`. */
  onIdle: () => void
}

/** Passes on the events of a run of the session, shows each to `observe`, and stores its turns. */
export type KeepTurns = (
  session: Session,
  events: AsyncIterable<Batched<RunEvent>>,
  observe: (event: RunEvent) => void,
) => AsyncIterable<RunEvent>

/** A message; with `isStored`, another worker has accepted it. */
export type PostedRun = QueuedRun & { isStored?: boolean } & Pick<WaitingMessage, 'earlier' | 'fromSeq'>

/** A conversation (`SessionContent`), and the queue of messages that continue it. Its idle time runs while no message waits or is answered. */
export class Session extends SessionContent {
  readonly id: string
  readonly tenant: TenantId
  /** The token of the session's claim. It changes when this worker takes back what it has offered to another. */
  token: string
  /** Names the folder of the session's tools. */
  readonly workspace: string
  readonly createdAt: string
  /** `undefined`: the session is in memory only. */
  readonly log: SessionLog | undefined
  /** `undefined`: its runs end with this worker. */
  readonly runs: SessionRuns | undefined
  readonly #options: SessionOptions
  readonly #queue: MessageQueue
  /** The message whose run began last. */
  #begun: QueuedRun | undefined
  #idleTimer: NodeJS.Timeout | undefined
  /** Messages whose acceptance is being stored. */
  readonly #accepting = new Set<Promise<unknown>>()

  constructor({ id, tenant, token, workspace, createdAt, log, ...content }: SessionState, options: SessionOptions) {
    const queue = new MessageQueue(() => this.#restartIdle())
    super(content, {
      onResize: (bytes) => options.place.resize(bytes),
      ...(!isOneShotSession(id) && { runId: () => queue.active?.id ?? null }),
    })
    this.#queue = queue
    this.id = id
    this.tenant = tenant
    this.token = token
    this.workspace = workspace ?? sessionFolder(id, token)
    this.createdAt = createdAt
    this.#options = options
    const { memories, clientTools } = this
    const saved = { messages: log?.nextSeq === 1 ? 0 : content.messages.length, compactions: 0, memories, clientTools }
    this.log = log && options.keep && new SessionLog(log, saved)
    this.runs = this.log && options.keepRuns && new SessionRuns(options.keepRuns(this), log?.endedFrom)
    this.#restartIdle()
  }

  get summary(): SessionSummary {
    const { active, waiting } = this.#queue
    const { message_count, title, last_message_at, ...rest } = this.facts
    return {
      session_id: this.id,
      created_at: this.createdAt,
      ...{ message_count, title, last_message_at },
      active_run_id: active?.isEnded === false ? active.id : null,
      last_run_id: this.conversation.all.at(-1)?.stamp?.runId ?? null,
      queued: waiting.length,
      ...rest,
    }
  }

  get state(): SessionState {
    const { id, tenant, token, workspace, createdAt, contentState } = this
    const waiting = this.waiting.map(({ run, message }) => ({
      runId: run.id,
      startedAt: run.startedAt.toISOString(),
      message,
      ...(run.isHeld && { isConfirmed: false }),
      ...(run.steering.isWaiting && { steers: run.steering.all }),
      ...(this.runs && { fromSeq: this.runs.fromSeqOf(run.id) }),
    }))
    const log = this.log && { ...this.log.state, ...(this.runs && { endedFrom: this.runs.endedFrom }) }
    return { id, tenant, token, workspace, createdAt, ...contentState, ...(log && { log }), waiting }
  }

  /** The state that a run starts from now. */
  start(): RunStart {
    const { conversation, remembered, memory, runs } = this
    const { progress } = runs ?? {}
    if (this.#begun) this.begin(this.#begun.message, { hasPrompt: progress?.hasPrompt ?? false })
    const kept = { conversation, remembered, clientTools: this.clientTools }
    return { ...kept, background: memory.background, services: { memory }, warnings: [], progress }
  }

  /** Throws `invalid_request` for a message that is to follow one which the session does not have. */
  checkPlace(message: MessageRequest): void {
    const taken = [...this.waiting, ...(this.isBusy && this.#begun ? [this.#begun] : [])]
    const accepted = taken.flatMap(({ run, message: { id } }) => (id === undefined ? [run.id] : [run.id, id]))
    checkPlace(message, { all: this.conversation.all, accepted: new Set(accepted) })
    seedHistory(message.seed ?? [])
  }

  /** The runs that have not begun. */
  get waiting(): readonly QueuedRun[] {
    return this.#queue.waiting
  }

  /** Whether a run has begun and has not ended. */
  get isBusy(): boolean {
    return this.#queue.active !== undefined
  }

  /** Whether this run waits for another worker to take over the session. */
  holds(run: Run): boolean {
    return this.#queue.holds(run)
  }

  /**
   * Begins no further run. Resolves when the current run has ended, and each message was either accepted, so that it
   * moves with the session, or refused.
   */
  async hold(): Promise<void> {
    await this.#queue.hold()
    await Promise.allSettled(this.#accepting)
    await this.#options.onHeld?.(this)
  }

  /**
   * Like `hold`, but if the runs are stored, the current run need not have ended: another worker can continue it from the log (D37.4).
   * There is such a run as long as `isBusy`.
   */
  async rest(): Promise<void> {
    const ended = this.#queue.hold()
    const rests = this.isBusy ? this.runs?.safePoint?.reached() : undefined
    await (rests ? Promise.race([ended, rests]) : ended)
    await this.#options.onHeld?.(this)
  }

  /** Makes `rest` stop waiting for the current run. */
  hasten(): void {
    this.runs?.safePoint?.hasten()
  }

  /** A message is accepted when `stored` resolves, and refused when it rejects. */
  async accept(stored: Promise<unknown>): Promise<void> {
    this.#accepting.add(stored)
    await stored.finally(() => this.#accepting.delete(stored))
  }

  /** Begins runs again. */
  resume(): void {
    this.runs?.resume()
    this.#queue.resume()
  }

  /** Throws `rate_limit` when the queue is full. */
  checkRoom(): void {
    this.#queue.checkRoom(this.id)
  }

  post({ run, message, execute, isStored = false, earlier, fromSeq }: PostedRun): void {
    const { keep } = this.#options
    const observed = (signal: AbortSignal) => {
      const [events, count] = [execute(run, signal), this.usage.counter(earlier?.state)]
      return this.log && keep ? keep(this, events, count) : new Observed(events, count)
    }
    let hasBegun = false
    this.runs?.add(run, message, { isStored, earlier, fromSeq })
    void run.ended.then(() => {
      if (earlier && !hasBegun) this.usage.addRestOf(earlier)
    })
    this.#queue.post({
      run,
      message,
      execute: (_run, signal) => {
        hasBegun = true
        this.#begun = { run, message, execute }
        this.runs?.begin(run)
        return observed(signal)
      },
    })
    const name = () => {
      if (!run.isAbandoned) this.name(message.prompt)
    }
    if (run.isHeld) void run.whenAccepted().then(name)
    else name()
    clearTimeout(this.#idleTimer)
  }

  /** Cancels all running and waiting runs, and resolves when they have ended. */
  async close(code: CancelCode): Promise<void> {
    this.log?.close('deleted')
    this.retire()
    await this.cancelAll(code)
  }

  cancelAll(code: CancelCode): Promise<void> {
    return this.#queue.cancelAll(code)
  }

  /**
   * Called when another worker owns the session, or it is being removed. Frees its place. Returns the messages of a held queue, which are not
   * answered here.
   */
  retire(): readonly QueuedRun[] {
    this.log?.close('moved')
    this.#options.place.leave()
    clearTimeout(this.#idleTimer)
    return this.#queue.retire()
  }

  #restartIdle(): void {
    clearTimeout(this.#idleTimer)
    const { onIdle, idleMs } = this.#options
    if (idleMs === undefined || !this.#queue.isEmpty || this.#queue.isLeaving) return
    this.#idleTimer = setTimeout(onIdle, idleMs).unref()
  }
}
