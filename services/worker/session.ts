import { Conversation, type ConversationState } from '../../shared/agent/engine/conversation.ts'
import { type RememberedTool, RememberedTools } from '../../shared/agent/engine/remembered-tools.ts'
import { sessionFolder } from '../../shared/agent/tools/workspace/workspace.ts'
import type { MessageRequest, SessionSummary } from '../../shared/cluster/port.ts'
import { tooMany } from '../../shared/kernel/errors.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { truncate } from '../../shared/kernel/text.ts'
import type { CancelCode, Run, RunExecutor } from '../../shared/work/runs/run.ts'
import type { RunStart } from './prepare-run.ts'
import { SessionMemory } from './session-memory.ts'
import type { SessionPlace } from './session-room.ts'
import { SessionUsage, type SessionUsageState } from './session-usage.ts'

/** Messages that wait behind the one that is being answered (D4.6). */
const MAX_WAITING = 8
const BUSY_RETRY_SECS = 5
const TITLE_CHARS = 80

/** `token` tells this session from earlier and later ones of the same id. */
export type SessionIdentity = { id: string; tenant: TenantId; token: string }

export type SessionOptions = {
  place: SessionPlace
  idleMs: number
  /** Called when the session has had no run for `idleMs`. */
  onIdle: () => void
}

/** A message that waits for its turn: it was accepted, and its run is known to the client. */
export type WaitingMessage = { runId: string; startedAt: string; message: MessageRequest }

/** The state that another worker needs to continue a session. */
export type SessionState = SessionIdentity &
  ConversationState & {
    createdAt: string
    title?: string | undefined
    used?: SessionUsageState | undefined
    /** Names the folder of the session's tools; made of the first token by default. */
    workspace?: string
    memories?: readonly string[] | undefined
    remembered?: readonly RememberedTool[] | undefined
    waiting?: readonly WaitingMessage[]
  }

/** A run in a session's queue. `execute` is called when all earlier runs have ended. */
export type QueuedRun = { run: Run; message: MessageRequest; execute: RunExecutor }

/**
 * A conversation, and the queue of messages that continue it one at a time, in order of arrival (D4.6). While the queue is held, the
 * run that was begun goes on and no other begins.
 */
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
  title: string | undefined
  readonly #memory: SessionMemory
  readonly #usage: SessionUsage
  readonly #options: SessionOptions
  readonly #runs = new Set<Run>()
  #queue: QueuedRun[] = []
  #current: Promise<void> | undefined
  #active: Run | undefined
  #isHeld = false
  #idleTimer: NodeJS.Timeout | undefined
  #isRetired = false

  constructor(
    { id, tenant, token, workspace, createdAt, title, used, memories, remembered, ...history }: SessionState,
    options: SessionOptions,
  ) {
    this.id = id
    this.tenant = tenant
    this.token = token
    this.workspace = workspace ?? sessionFolder(id, token)
    this.createdAt = createdAt
    this.#options = options
    this.#usage = new SessionUsage(used)
    this.conversation = new Conversation(history, {
      onResize: (bytes) => options.place.resize(bytes),
      runId: () => this.#active?.id ?? null,
    })
    this.title = title ?? titleOf(firstPromptOf(history.messages))
    this.#memory = new SessionMemory(this.conversation, memories)
    this.remembered = new RememberedTools(remembered)
    this.#restartIdle()
  }

  get summary(): SessionSummary {
    const { messages, messageCount } = this.conversation
    return {
      session_id: this.id,
      created_at: this.createdAt,
      message_count: messageCount,
      title: this.title ?? null,
      last_message_at: messages.at(-1)?.stamp?.at ?? null,
      active_run_id: this.#active?.isEnded === false ? this.#active.id : null,
      queued: this.waiting.length,
      ...this.#usage.state,
      remembered: [...this.remembered.entries],
    }
  }

  get state(): SessionState {
    const { id, tenant, token, workspace, conversation, createdAt, title } = this
    const { messages, messageCount } = conversation
    const [memories, remembered] = [this.#memory.entries, this.remembered.entries]
    const waiting = this.waiting.map(({ run, message }) => ({
      runId: run.id,
      startedAt: run.startedAt.toISOString(),
      message,
    }))
    const history = { messages, messageCount, memories, remembered }
    return { id, tenant, token, workspace, createdAt, title, used: this.#usage.state, ...history, waiting }
  }

  /** The state that a run starts from now. */
  start(): RunStart {
    const { background } = this.#memory
    const { conversation, remembered } = this
    return { conversation, background, services: { memory: this.#memory }, remembered, warnings: [] }
  }

  /** The runs that have not begun. */
  get waiting(): readonly QueuedRun[] {
    return this.#queue.filter(({ run }) => !run.isEnded)
  }

  /** Whether a run has begun and has not ended. */
  get isBusy(): boolean {
    return this.#current !== undefined
  }

  get isHeld(): boolean {
    return this.#isHeld
  }

  /** Whether this run waits in the queue while the queue is held. */
  holds(run: Run): boolean {
    return this.#isHeld && this.#queue.some((queued) => queued.run === run)
  }

  /** Begins no further run. Resolves when the one that was begun has ended. */
  async hold(): Promise<void> {
    this.#isHeld = true
    await this.#current
  }

  /** Begins runs again. */
  resume(): void {
    this.#isHeld = false
    this.#beginNext()
  }

  /** Throws `rate_limit` when the queue is full. */
  checkRoom(): void {
    if (this.#runs.size > MAX_WAITING) {
      throw tooMany(
        `session ${this.id} has ${MAX_WAITING} messages waiting; send this one after the next answer`,
        BUSY_RETRY_SECS,
      )
    }
  }

  post(queued: QueuedRun): void {
    const { run, message } = queued
    this.title ??= titleOf(message.prompt)
    this.#runs.add(run)
    clearTimeout(this.#idleTimer)
    this.#queue.push(queued)
    void run.ended.then(() => {
      this.#runs.delete(run)
      this.#restartIdle()
    })
    this.#beginNext()
  }

  /** Cancels all running and waiting runs, and resolves when they have ended. */
  async close(code: CancelCode): Promise<void> {
    this.retire()
    await this.cancelAll(code)
  }

  async cancelAll(code: CancelCode): Promise<void> {
    const runs = [...this.#runs]
    for (const run of runs) run.cancel(code)
    await Promise.all(runs.map(({ ended }) => ended))
  }

  /** Stops the idle timer for good and gives the place back: another worker owns the session now, or it is being removed. */
  retire(): void {
    this.#isRetired = true
    this.#options.place.leave()
    clearTimeout(this.#idleTimer)
  }

  #beginNext(): void {
    if (this.#current || this.#isHeld) return
    const next = this.#queue.shift()
    if (!next) return
    this.#active = next.run
    // Not in this turn, so that a run that was just posted counts as waiting.
    this.#current = Promise.resolve().then(() =>
      next.run.execute((run, signal) => this.#usage.count(next.execute(run, signal))),
    )
    void this.#current.then(() => {
      this.#current = undefined
      this.#active = undefined
      this.#beginNext()
    })
  }

  #restartIdle(): void {
    clearTimeout(this.#idleTimer)
    if (this.#runs.size > 0 || this.#isRetired) return
    const { onIdle, idleMs } = this.#options
    this.#idleTimer = setTimeout(onIdle, idleMs).unref()
  }
}

const firstPromptOf = (messages: SessionState['messages']): string =>
  messages.find((message) => message.role === 'user')?.text ?? ''

/** The beginning of a prompt as one line; `undefined` for an empty one. */
const titleOf = (prompt: string): string | undefined =>
  truncate(prompt.replaceAll(/\s+/g, ' ').trim(), TITLE_CHARS, '') || undefined
