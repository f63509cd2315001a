import type { SessionSummary } from '../../shared/broker/port.ts'
import { Conversation, type ConversationState } from '../../shared/engine/conversation.ts'
import { type RememberedTool, RememberedTools } from '../../shared/engine/remembered-tools.ts'
import { tooMany } from '../../shared/errors.ts'
import type { TenantId } from '../../shared/tenant.ts'
import { sessionFolder } from '../../shared/tools/workspace/workspace.ts'
import type { CancelCode, Run, RunExecutor } from '../runs/run.ts'
import type { RunStart } from './prepare-run.ts'
import { SessionMemory } from './session-memory.ts'
import type { SessionPlace } from './session-room.ts'

/** Messages that wait behind the one that is being answered (D4.6). */
const MAX_WAITING = 8
const BUSY_RETRY_SECS = 5

/** `token` tells this session from earlier and later ones of the same id. */
export type SessionIdentity = { id: string; tenant: TenantId; token: string }

export type SessionOptions = {
  place: SessionPlace
  idleMs: number
  /** Called when the session has had no run for `idleMs`. */
  onIdle: () => void
}

/** The state that another worker needs to continue a session. */
export type SessionState = SessionIdentity &
  ConversationState & {
    createdAt: string
    memories?: readonly string[] | undefined
    remembered?: readonly RememberedTool[] | undefined
  }

/** A conversation, and the queue of messages that continue it one at a time, in order of arrival (D4.6). */
export class Session {
  readonly id: string
  readonly tenant: TenantId
  readonly token: string
  readonly conversation: Conversation
  readonly remembered: RememberedTools
  readonly #memory: SessionMemory
  readonly #createdAt: string
  readonly #options: SessionOptions
  readonly #runs = new Set<Run>()
  #tail: Promise<void> = Promise.resolve()
  #idleTimer: NodeJS.Timeout | undefined
  #isRetired = false

  constructor(
    { id, tenant, token, createdAt, memories, remembered, ...history }: SessionState,
    options: SessionOptions,
  ) {
    this.id = id
    this.tenant = tenant
    this.token = token
    this.#createdAt = createdAt
    this.#options = options
    this.conversation = new Conversation(history, (bytes) => options.place.resize(bytes))
    this.#memory = new SessionMemory(this.conversation, memories)
    this.remembered = new RememberedTools(remembered)
    this.#restartIdle()
  }

  /** Names the folder of the session's tools. */
  get workspace(): string {
    return sessionFolder(this.id, this.token)
  }

  get summary(): SessionSummary {
    return {
      session_id: this.id,
      created_at: this.#createdAt,
      message_count: this.conversation.messageCount,
    }
  }

  get state(): SessionState {
    const { id, tenant, token, conversation } = this
    const { messages, messageCount } = conversation
    const [memories, remembered] = [this.#memory.entries, this.remembered.entries]
    return { id, tenant, token, createdAt: this.#createdAt, messages, messageCount, memories, remembered }
  }

  /** The state that a run starts from now. */
  start(): RunStart {
    const { background } = this.#memory
    const { conversation, remembered } = this
    return { conversation, background, services: { memory: this.#memory }, remembered, warnings: [] }
  }

  /** Resolves when all runs posted so far have ended. */
  settled(): Promise<void> {
    return this.#tail
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

  /** Queues a run. `execute` is called when all earlier runs have ended. */
  post(run: Run, execute: RunExecutor): void {
    this.#runs.add(run)
    clearTimeout(this.#idleTimer)
    this.#tail = this.#tail.then(() => run.execute(execute))
    void run.ended.then(() => {
      this.#runs.delete(run)
      this.#restartIdle()
    })
  }

  /** Cancels all running and waiting runs, and resolves when they have ended. */
  async close(code: CancelCode): Promise<void> {
    this.retire()
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

  #restartIdle(): void {
    clearTimeout(this.#idleTimer)
    if (this.#runs.size > 0 || this.#isRetired) return
    const { onIdle, idleMs } = this.#options
    this.#idleTimer = setTimeout(onIdle, idleMs).unref()
  }
}
