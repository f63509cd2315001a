import { Conversation } from '../../../shared/agent/engine/conversation.ts'
import { seedHistory } from '../../../shared/agent/engine/messages/seed.ts'
import { RememberedTools } from '../../../shared/agent/engine/remembered-tools.ts'
import type { SessionFacts } from '../../../shared/agent/sessions/log-documents.ts'
import { isOneShotSession } from '../../../shared/agent/sessions/one-shot.ts'
import type { ClientTool } from '../../../shared/agent/tools/client-tools.ts'
import { sessionFolder } from '../../../shared/agent/tools/workspace/workspace.ts'
import type { MessageRequest, SessionSummary } from '../../../shared/cluster/commands/sessions.ts'
import type { Batched } from '../../../shared/kernel/async/batch.ts'
import { Observed } from '../../../shared/kernel/async/observed.ts'
import type { RunEvent } from '../../../shared/kernel/events.ts'
import { jsonBytes } from '../../../shared/kernel/json.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { titleOf } from '../../../shared/reading/title.ts'
import type { Run } from '../../../shared/work/runs/run.ts'
import type { CancelCode } from '../../../shared/work/runs/run-identity.ts'
import type { RunStart } from '../prepare-run.ts'
import { checkPlace, placeOf } from './message-place.ts'
import { MessageQueue, type QueuedRun } from './message-queue.ts'
import { SessionLog } from './session-log.ts'
import { SessionMemory } from './session-memory.ts'
import type { SessionPlace } from './session-room.ts'
import { type RunsKeeper, SessionRuns } from './session-runs.ts'
import type { SessionState, WaitingMessage } from './session-state.ts'
import { SessionUsage } from './session-usage.ts'

const TITLE_CHARS = 80

export type SessionOptions = {
  place: SessionPlace
  /** Left out: it is never idle. */
  idleMs?: number | undefined
  /** Stores the turns of its runs. Left out: the session is in memory only. */
  keep?: KeepTurns | undefined
  /** Stores its runs, too, so that another worker can go on with them. */
  keepRuns?: ((session: Session) => RunsKeeper) | undefined
  /** Called when no run goes on any more, before another worker takes the session over. */
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

/** A message, which another worker has accepted if it is stored. */
export type PostedRun = QueuedRun & { isStored?: boolean } & Pick<WaitingMessage, 'earlier' | 'fromSeq'>

/** A conversation, and the queue of messages that continue it. Its idle time runs while no message waits or is answered. */
export class Session {
  readonly id: string
  readonly tenant: TenantId
  /** The token of the session's claim. It changes when this worker takes back what it has offered to another. */
  token: string
  /** Names the folder of the session's tools. */
  readonly workspace: string
  readonly conversation: Conversation
  readonly remembered: RememberedTools
  readonly createdAt: string
  readonly from: SessionSummary['from'] | undefined
  /** `undefined`: the session is in memory only. */
  readonly log: SessionLog | undefined
  /** `undefined`: its runs end with this worker. */
  readonly runs: SessionRuns | undefined
  title: string | undefined
  #clientTools: readonly ClientTool[] = []
  #clientToolBytes = 0
  readonly #memory: SessionMemory
  readonly #usage: SessionUsage
  readonly #options: SessionOptions
  readonly #queue = new MessageQueue(() => this.#restartIdle())
  /** The message whose run was begun last. */
  #begun: QueuedRun | undefined
  #idleTimer: NodeJS.Timeout | undefined
  /** Messages whose acceptance is being stored. */
  readonly #accepting = new Set<Promise<unknown>>()

  constructor(
    {
      id,
      tenant,
      token,
      workspace,
      createdAt,
      title,
      from,
      used,
      memories,
      clientTools = [],
      remembered,
      log,
      ...history
    }: SessionState,
    options: SessionOptions,
  ) {
    this.id = id
    this.tenant = tenant
    this.token = token
    this.workspace = workspace ?? sessionFolder(id, token)
    this.createdAt = createdAt
    this.from = from
    this.#options = options
    this.#usage = new SessionUsage(used)
    this.#keepClientTools(clientTools)
    this.conversation = new Conversation(history, {
      onResize: (bytes) => options.place.resize(bytes + this.#clientToolBytes),
      ...(!isOneShotSession(id) && { runId: () => this.#queue.active?.id ?? null }),
    })
    this.title = title ?? nameOf(firstPromptOf(history.messages))
    this.#memory = new SessionMemory(this.conversation, memories)
    this.remembered = new RememberedTools(remembered)
    const saved = { messages: log?.nextSeq === 1 ? 0 : history.messages.length, compactions: 0 }
    this.log = log && options.keep && new SessionLog(log, { ...saved, memories: this.#memory.entries, clientTools })
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

  /** The part of the summary that is stored. */
  get facts(): SessionFacts {
    const { all, messageCount } = this.conversation
    return {
      message_count: messageCount,
      title: this.title ?? null,
      last_message_at: all.at(-1)?.stamp?.at ?? null,
      ...this.#usage.state,
      remembered: [...this.remembered.entries],
      ...(this.from && { from: this.from }),
    }
  }

  /** The tools of its client, for messages that bring none. */
  get clientTools(): readonly ClientTool[] {
    return this.#clientTools
  }

  get memories(): readonly string[] {
    return this.#memory.entries
  }

  get state(): SessionState {
    const { id, tenant, token, workspace, conversation, createdAt, title, from } = this
    const { all: messages, messageCount } = conversation
    const [memories, remembered] = [this.#memory.entries, this.remembered.entries]
    const waiting = this.waiting.map(({ run, message }) => ({
      runId: run.id,
      startedAt: run.startedAt.toISOString(),
      message,
      ...(run.isHeld && { isConfirmed: false }),
      ...(run.steering.isWaiting && { steers: run.steering.all }),
      ...(this.runs && { fromSeq: this.runs.fromSeqOf(run.id) }),
    }))
    const log = this.log && { ...this.log.state, ...(this.runs && { endedFrom: this.runs.endedFrom }) }
    const history = {
      messages,
      messageCount,
      memories,
      clientTools: this.#clientTools,
      remembered,
      ...(log && { log }),
    }
    return { id, tenant, token, workspace, createdAt, title, from, used: this.#usage.state, ...history, waiting }
  }

  /** The state that a run starts from now. */
  start(): RunStart {
    const { background } = this.#memory
    const { conversation, remembered, runs } = this
    if (this.#begun && !runs?.progress?.hasPrompt) this.#place(this.#begun.message)
    this.#keepClientTools(this.#begun?.message.client_tools)
    const services = { memory: this.#memory }
    const kept = { conversation, remembered, clientTools: this.#clientTools }
    return { ...kept, background, services, warnings: [], progress: runs?.progress }
  }

  /** Throws `invalid_request` for a message that follows one which the session does not have. */
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

  /** Whether this run waits for another worker to take the session over. */
  holds(run: Run): boolean {
    return this.#queue.holds(run)
  }

  /** Begins no further run. Resolves when the one that was begun has ended, and when each message is accepted, so that it moves, or is refused. */
  async hold(): Promise<void> {
    await this.#queue.hold()
    await Promise.allSettled(this.#accepting)
    await this.#options.onHeld?.(this)
  }

  /**
   * As `hold`, and where its runs are stored it need not have ended: it can be left to another worker, which goes on with it from the log
   * (D37.4). It is begun as long as `isBusy`.
   */
  async rest(): Promise<void> {
    const ended = this.#queue.hold()
    const rests = this.isBusy ? this.runs?.safePoint?.reached() : undefined
    await (rests ? Promise.race([ended, rests]) : ended)
    await this.#options.onHeld?.(this)
  }

  /** `rest` waits no longer for a run that was begun. */
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
      const [events, count] = [execute(run, signal), this.#usage.counter(earlier?.state)]
      return this.log && keep ? keep(this, events, count) : new Observed(events, count)
    }
    let hasBegun = false
    this.runs?.add(run, message, { isStored, earlier, fromSeq })
    void run.ended.then(() => {
      if (earlier && !hasBegun) this.#usage.addRestOf(earlier)
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
      if (!run.isAbandoned) this.title ??= nameOf(message.prompt)
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
   * Another worker owns the session now, or it is being removed: gives its place back. Returns the messages of a held queue, which are not
   * answered here.
   */
  retire(): readonly QueuedRun[] {
    this.log?.close('moved')
    this.#options.place.leave()
    clearTimeout(this.#idleTimer)
    return this.#queue.retire()
  }

  /** The prompt of the message comes next. */
  #place(message: MessageRequest): void {
    const { conversation } = this
    conversation.prepare({ after: placeOf(message, conversation.all) })
    conversation.append(...seedHistory(message.seed ?? []))
    conversation.prepare({ client: message.id })
  }

  /** Keeps the tools that a message brings. One that brings none leaves the earlier ones. */
  #keepClientTools(tools: readonly ClientTool[] | undefined): void {
    if (!tools || tools.length + this.#clientTools.length === 0) return
    this.#clientTools = tools
    this.#clientToolBytes = tools.length > 0 ? jsonBytes(tools) : 0
  }

  #restartIdle(): void {
    clearTimeout(this.#idleTimer)
    const { onIdle, idleMs } = this.#options
    if (idleMs === undefined || !this.#queue.isEmpty || this.#queue.isLeaving) return
    this.#idleTimer = setTimeout(onIdle, idleMs).unref()
  }
}

const firstPromptOf = (messages: SessionState['messages']): string =>
  messages.find((message) => message.role === 'user')?.text ?? ''

/** `undefined` for an empty prompt. */
const nameOf = (prompt: string): string | undefined => titleOf(prompt, TITLE_CHARS) || undefined
