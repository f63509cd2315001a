import type { Conversation } from '../../../shared/agent/engine/conversation.ts'
import type { SessionHead } from '../../../shared/agent/sessions/load-session.ts'
import type { LogEntry, LogWrite, SessionFacts } from '../../../shared/agent/sessions/log-documents.ts'
import type { ClientTool } from '../../../shared/agent/tools/client-tools.ts'
import { newToken } from '../../../shared/kernel/ids.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { SessionRuns } from './session-runs.ts'

/** The state with which an owner continues the log. */
export type LogState = {
  head: SessionHead
  nextSeq: number
  /** The place of the oldest entry that is still valid. Missing in the state of an older release. */
  baseSeq?: number
  /** When that entry and the head were written, in milliseconds since 1970. */
  baseMs: number
  headMs: number
  /** Whether the head notes that the session remembers tools. */
  remembers: boolean
  /** Names this owner; a new one by default. */
  owner?: string
  /** The name of this process, if the first entry is the mark of a one-shot run. */
  busyAt?: string | undefined
  /** The owner that has handed over the session. It may have sent an entry that the store has not answered. */
  predecessor?: string
  /** Whether the log lacks messages that the session has. */
  isBehind?: boolean
  /** The places in the log at which the most recently ended runs begin. */
  endedFrom?: readonly number[] | undefined
}

/** The part of a session that its log holds. */
export type LoggedSession = {
  readonly tenant: TenantId
  readonly conversation: Pick<Conversation, 'all' | 'compactions' | 'bytes'>
  readonly facts: SessionFacts
  readonly memories: readonly string[]
  readonly clientTools: readonly ClientTool[]
  readonly runs?: Pick<SessionRuns, 'take'> | undefined
}

/** After `renewalMs`, entries that are still valid are written again; the store keeps them for `lifeMs`. */
export type LogTimes = { renewalMs: number; lifeMs: number; now(): number }

/** `moved`: another worker has the session now. `refused`: the session's creation was refused and is undone. */
type LogEnd = 'moved' | 'deleted' | 'refused'

/** How much of the session is stored. */
type Saved = {
  messages: number
  compactions: number
  memories: readonly string[]
  clientTools: readonly ClientTool[]
}
/** An entry that the store has not answered yet. It is sent again unchanged, because the first attempt may have been stored. */
type Pending = { write: LogWrite; saved: Saved; version: number; onStored: (() => void) | undefined }
type Waiter = { version: number; resolve: (isStored: boolean) => void }

/**
 * A process that opens the session reads the entries from the last one that has the whole history. Such an entry is written after MIN_ENTRIES others,
 * or later when the history is long, so that it costs at most BYTES_AN_ENTRY for each entry since the last one.
 */
const MIN_ENTRIES = 50
const BYTES_AN_ENTRY = 4_096

/** The part of a session's log that its owner writes: which messages are stored, which are not, and which callers wait for that. */
export class SessionLog {
  readonly head: SessionHead
  readonly #owner: string
  readonly #busyAt: string | undefined
  readonly #predecessor: string | undefined
  #nextSeq: number
  #baseSeq: number
  #baseMs: number
  #headMs: number
  #remembers: boolean
  #needsBase: boolean
  #saved: Saved
  #pending: Pending | undefined
  /** The number of changes of the session, and of those that are stored. */
  #version = 0
  #savedVersion = 0
  #waiters: Waiter[] = []
  #end: LogEnd | undefined

  constructor(state: LogState, saved: Saved) {
    const { head, nextSeq, baseSeq = nextSeq, baseMs, headMs, remembers } = state
    const { owner = newToken(), busyAt, predecessor, isBehind = false } = state
    this.head = head
    this.#owner = owner
    this.#busyAt = busyAt
    this.#predecessor = predecessor
    this.#nextSeq = nextSeq
    this.#baseSeq = baseSeq
    this.#baseMs = baseMs
    this.#headMs = headMs
    this.#remembers = remembers
    this.#needsBase = isBehind
    if (isBehind) this.#version = 1
    this.#saved = saved
  }

  /** The state for the next owner. */
  get state(): LogState {
    const { head } = this
    return {
      ...{ head, nextSeq: this.#nextSeq, baseSeq: this.#baseSeq, baseMs: this.#baseMs },
      ...{ headMs: this.#headMs, remembers: this.#remembers },
      predecessor: this.#owner,
      isBehind: this.isDue,
    }
  }

  /** The name of this owner. */
  get owner(): string {
    return this.#owner
  }

  get nextSeq(): number {
    return this.#nextSeq
  }

  /** Set when nothing more is written, with the reason. */
  get end(): LogEnd | undefined {
    return this.#end
  }

  /** Whether nothing of the session is stored or being stored. */
  get isUnwritten(): boolean {
    return this.#nextSeq === 1 && !this.#pending
  }

  get isDue(): boolean {
    return this.#end === undefined && this.#savedVersion < this.#version
  }

  /** Notes that the session has changed. */
  note(): void {
    this.#version++
  }

  /** Resolves with `true` when all noted changes are stored, and with `false` when this owner can no longer store them. */
  stored(): Promise<boolean> {
    if (this.#end !== undefined) return Promise.resolve(false)
    if (!this.isDue) return Promise.resolve(true)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.#waiters.push({ version: this.#version, resolve })
    return promise
  }

  close(end: LogEnd): void {
    this.#end ??= end
    for (const { resolve } of this.#waiters.splice(0)) resolve(false)
  }

  /** Whether the head is to be written again. */
  isHeadDue(remembers: boolean, { renewalMs, now }: LogTimes): boolean {
    return now() - this.#headMs > renewalMs || (remembers && !this.#remembers)
  }

  onHeadRenewed(remembers: boolean, { now }: LogTimes): void {
    this.#headMs = now()
    this.#remembers = remembers
  }

  /** The entry to write: the one without an answer, or a new one with all changes. */
  take(session: LoggedSession, times: LogTimes): LogWrite {
    this.#pending ??= this.#build(session, times)
    return this.#pending.write
  }

  onStored(places: number): void {
    if (!this.#pending) return
    const { write, saved, version, onStored } = this.#pending
    onStored?.()
    this.#pending = undefined
    this.#nextSeq += places
    this.#saved = saved
    this.#savedVersion = version
    if (write.entry.isBase) {
      this.#baseSeq = write.seq
      this.#baseMs = Date.parse(write.entry.at)
    }
    const isReady = (waiter: Waiter) => waiter.version <= version
    const ready = this.#waiters.filter(isReady)
    this.#waiters = this.#waiters.filter((waiter) => !isReady(waiter))
    for (const { resolve } of ready) resolve(true)
  }

  /**
   * Called when the places of the entry are already taken by the owner `by`. Returns whether this worker still owns the session: its
   * predecessor may have written late; the whole history is then written after that.
   */
  onTaken(by: string | undefined, places: number): boolean {
    if (by === undefined || by !== this.#predecessor) return false
    this.#pending = undefined
    this.#nextSeq += places
    this.#needsBase = true
    return true
  }

  /** Called when the store refuses the entry. The next entry then has the whole history. */
  onRefused(): void {
    this.#pending = undefined
    this.#needsBase = true
    this.#savedVersion = this.#version
    for (const { resolve } of this.#waiters.splice(0)) resolve(false)
  }

  #build(session: LoggedSession, { renewalMs, lifeMs, now }: LogTimes): Pending {
    const { tenant, conversation, memories, clientTools } = session
    const { all: messages, compactions } = conversation
    const isCompacted = compactions !== this.#saved.compactions
    const mayFollow = Math.max(MIN_ENTRIES, conversation.bytes / BYTES_AN_ENTRY)
    const isFar = this.#nextSeq - this.#baseSeq > mayFollow
    const isBase = this.#needsBase || isCompacted || isFar || now() - this.#baseMs > renewalMs
    this.#needsBase = false
    const runs = session.runs?.take(this.#nextSeq, { isBase })
    const entry: LogEntry = {
      at: new Date(now()).toISOString(),
      facts: session.facts,
      messages: isBase ? messages : messages.slice(this.#saved.messages),
      ...((isBase || memories !== this.#saved.memories) && { memories }),
      ...((isBase ? clientTools.length > 0 : clientTools !== this.#saved.clientTools) && { client_tools: clientTools }),
      ...(runs && { runs: runs.entry }),
      ...(isBase && { isBase }),
    }
    const { session_id: sessionId, workspace } = this.head
    const place = { sessionId, workspace, seq: this.#nextSeq, owner: this.#owner }
    const busyAt = this.#nextSeq === 1 ? this.#busyAt : undefined
    return {
      write: { tenant, ...place, entry, expiresMs: now() + lifeMs, busyAt },
      saved: { messages: messages.length, compactions, memories, clientTools },
      version: this.#version,
      onStored: runs?.onStored,
    }
  }
}
