import { Conversation, type ConversationState } from '../../shared/agent/engine/conversation.ts'
import { type RememberedTool, RememberedTools } from '../../shared/agent/engine/remembered-tools.ts'
import { sessionFolder } from '../../shared/agent/tools/workspace/workspace.ts'
import type { MessageRequest, SessionSummary } from '../../shared/cluster/commands/sessions.ts'
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

type State = 'idle' | 'answering' | 'finishing' | 'held' | 'leaving' | 'gone'

/**
 * A conversation, and the queue of messages that continue it one at a time, in order of arrival (D4.6). Between `hold` and `resume` the
 * run that was begun goes on and no other begins, so that another worker can take the session over with the messages that wait.
 *
 * | State     | Event                                                   | Next state                                    |
 * |-----------|---------------------------------------------------------|-----------------------------------------------|
 * | idle      | a message comes                                         | answering                                     |
 * | idle      | `hold`                                                  | held                                          |
 * | idle      | `retire`                                                | gone                                          |
 * | answering | its run ends                                            | answering the next message; idle without one  |
 * | answering | `hold`                                                  | finishing                                     |
 * | answering | `retire`                                                | leaving                                       |
 * | finishing | its run ends                                            | held                                          |
 * | finishing | `resume`: it stays here                                 | answering                                     |
 * | finishing | `retire`                                                | leaving, without the messages that wait       |
 * | held      | `resume`: it was adopted, or no other worker takes it   | answering the next message; idle without one  |
 * | held      | `retire`: another worker has it, or it was deleted      | gone, without the messages that wait          |
 * | leaving   | its run ends                                            | leaving with the next message; gone without one |
 *
 * A message that comes in another state than idle waits, and a session that is leaving or gone takes none. A method that a state does
 * not list changes nothing in it. The session's time runs while no message waits or is answered, unless it is leaving or gone.
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
  #state: State = 'idle'
  /** The run that was begun, from its begin to its end. */
  #current: { run: Run; done: Promise<void> } | undefined
  #idleTimer: NodeJS.Timeout | undefined

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
      runId: () => this.#current?.run.id ?? null,
    })
    this.title = title ?? titleOf(firstPromptOf(history.messages))
    this.#memory = new SessionMemory(this.conversation, memories)
    this.remembered = new RememberedTools(remembered)
    this.#restartIdle()
  }

  get summary(): SessionSummary {
    const { messages, messageCount } = this.conversation
    const active = this.#current?.run
    return {
      session_id: this.id,
      created_at: this.createdAt,
      message_count: messageCount,
      title: this.title ?? null,
      last_message_at: messages.at(-1)?.stamp?.at ?? null,
      active_run_id: active?.isEnded === false ? active.id : null,
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

  /** Whether this run waits for another worker to take the session over. */
  holds(run: Run): boolean {
    const isHeld = this.#state === 'held' || this.#state === 'finishing'
    return isHeld && this.#queue.some((queued) => queued.run === run)
  }

  /** Begins no further run. Resolves when the one that was begun has ended. */
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
    if (this.#isLeaving) throw new Error(`a session that is ${this.#state} takes no message`)
    const { run, message } = queued
    this.title ??= titleOf(message.prompt)
    this.#runs.add(run)
    clearTimeout(this.#idleTimer)
    this.#queue.push(queued)
    void run.ended.then(() => {
      this.#runs.delete(run)
      this.#restartIdle()
    })
    if (this.#state === 'idle') this.#answerNext('idle')
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

  /**
   * Another worker owns the session now, or it is being removed. Returns the messages that a held queue had: they are not answered here.
   * Those of an open queue are.
   */
  retire(): readonly QueuedRun[] {
    this.#options.place.leave()
    clearTimeout(this.#idleTimer)
    if (this.#state === 'idle') this.#move('idle', 'gone')
    if (this.#state === 'answering') this.#move('answering', 'leaving')
    if (this.#state !== 'held' && this.#state !== 'finishing') return []
    const { waiting } = this
    this.#queue = []
    this.#move(this.#state, this.#state === 'held' ? 'gone' : 'leaving')
    return waiting
  }

  /** Begins the run of the next message that waits. */
  #answerNext(from: 'idle' | 'held' | 'answering' | 'leaving'): void {
    const [busy, free] = from === 'leaving' ? (['leaving', 'gone'] as const) : (['answering', 'idle'] as const)
    const next = this.#queue.shift()
    this.#move(from, next ? busy : free)
    if (!next) return
    const { run, execute } = next
    // Not in this turn, so that a run that was just posted counts as waiting.
    const done = Promise.resolve().then(() => run.execute((_run, signal) => this.#usage.count(execute(run, signal))))
    this.#current = { run, done }
    void done.then(() => this.#onAnswered())
  }

  #onAnswered(): void {
    this.#current = undefined
    if (this.#state === 'finishing') this.#move('finishing', 'held')
    else this.#answerNext(this.#state === 'leaving' ? 'leaving' : 'answering')
  }

  get #isLeaving(): boolean {
    return this.#state === 'leaving' || this.#state === 'gone'
  }

  #restartIdle(): void {
    clearTimeout(this.#idleTimer)
    if (this.#runs.size > 0 || this.#isLeaving) return
    const { onIdle, idleMs } = this.#options
    this.#idleTimer = setTimeout(onIdle, idleMs).unref()
  }

  #move(from: State, to: State): void {
    if (this.#state !== from) throw new Error(`a session that is ${this.#state}, not ${from}, cannot become ${to}`)
    this.#state = to
  }
}

const firstPromptOf = (messages: SessionState['messages']): string =>
  messages.find((message) => message.role === 'user')?.text ?? ''

/** The beginning of a prompt as one line; `undefined` for an empty one. */
const titleOf = (prompt: string): string | undefined =>
  truncate(prompt.replaceAll(/\s+/g, ' ').trim(), TITLE_CHARS, '') || undefined
