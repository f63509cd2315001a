import type { SessionSummary } from '../../shared/broker/port.ts'
import { Conversation, type ConversationState } from '../../shared/engine/conversation.ts'
import { tooMany } from '../../shared/errors.ts'
import type { TenantId } from '../../shared/tenant.ts'
import type { RunStart } from './prepare-run.ts'
import type { CancelCode, Run, RunExecutor } from './run.ts'
import { SessionMemory } from './session-memory.ts'

const MAX_WAITING = 8
const BUSY_RETRY_SECS = 5

export type SessionIdentity = { id: string; tenant: TenantId }

/** All of a session that another worker needs to go on with it. */
export type SessionState = SessionIdentity & ConversationState & { createdAt: string; memories?: readonly string[] }

/**
 * One conversation and the messages that continue it, one at a time and in the order in which they came (D4.6).
 */
export class Session {
  readonly id: string
  readonly tenant: TenantId
  readonly conversation: Conversation
  readonly #memory: SessionMemory
  readonly #createdAt: string
  readonly #idleMs: number
  readonly #onIdle: () => void
  readonly #runs = new Set<Run>()
  #tail: Promise<void> = Promise.resolve()
  #idleTimer: NodeJS.Timeout | undefined
  #isRetired = false

  /** `onIdle` is called when nothing has been asked of the session for `idleMs`. */
  constructor({ id, tenant, createdAt, memories, ...history }: SessionState, idleMs: number, onIdle: () => void) {
    this.id = id
    this.tenant = tenant
    this.#createdAt = createdAt
    this.conversation = new Conversation(history)
    this.#memory = new SessionMemory(this.conversation, memories)
    this.#idleMs = idleMs
    this.#onIdle = onIdle
    this.#restartIdle()
  }

  get summary(): SessionSummary {
    return {
      session_id: this.id,
      created_at: this.#createdAt,
      message_count: this.conversation.messageCount,
    }
  }

  get state(): SessionState {
    const { messages, messageCount } = this.conversation
    const memories = this.#memory.entries
    return { id: this.id, tenant: this.tenant, createdAt: this.#createdAt, messages, messageCount, memories }
  }

  /** What its next message starts from. */
  get start(): RunStart {
    const { background } = this.#memory
    return {
      conversation: this.conversation,
      ...(background !== undefined && { background }),
      facilities: { recall: this.#memory },
    }
  }

  /** Resolves when everything that was posted so far has ended. */
  settled(): Promise<void> {
    return this.#tail
  }

  /** Throws `rate_limit` when as many messages wait as may: one is being answered, the others are behind it. */
  checkRoom(): void {
    if (this.#runs.size > MAX_WAITING) {
      throw tooMany(
        `session ${this.id} has ${MAX_WAITING} messages waiting; send this one when one is answered`,
        BUSY_RETRY_SECS,
      )
    }
  }

  /** Runs after everything that was posted before. */
  post(run: Run, execute: RunExecutor): void {
    this.#runs.add(run)
    clearTimeout(this.#idleTimer)
    this.#tail = this.#tail.then(() => run.execute(execute))
    void run.ended.then(() => {
      this.#runs.delete(run)
      this.#restartIdle()
    })
  }

  /** Ends everything that runs or waits, and resolves when all of it has ended. */
  async close(code: CancelCode): Promise<void> {
    this.retire()
    const runs = [...this.#runs]
    for (const run of runs) run.cancel(code)
    await Promise.all(runs.map(({ ended }) => ended))
  }

  /** Another worker's from now on, or nobody's: it is not removed for being idle. */
  retire(): void {
    this.#isRetired = true
    clearTimeout(this.#idleTimer)
  }

  #restartIdle(): void {
    clearTimeout(this.#idleTimer)
    if (this.#runs.size === 0 && !this.#isRetired) this.#idleTimer = setTimeout(this.#onIdle, this.#idleMs).unref()
  }
}
