import type { JsonObject } from '../events.ts'
import type { TenantId } from '../tenant.ts'

/** Body of `POST /agent/run` (api.md "RunRequest"), checked. */
export type RunRequest = {
  prompt: string
  model?: string
  system_prompt?: string
  max_turns?: number
  stop_sequences?: string[]
  customer_id?: string
  auto_queue_plan?: boolean
}

/** Body of `POST /sessions/{id}/messages` (api.md "SendMessageRequest"), checked. */
export type MessageRequest = { prompt: string; model?: string }

/** Body of a permission reply (api.md "PermissionReplyRequest"), checked. */
export type PermissionReply = { allow: boolean; reason?: string }

export const RUN_STATUSES = ['running', 'waiting', 'done', 'failed', 'cancelled'] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

/** `GET /runs/{run_id}` (D4.5). */
export type RunSummary = {
  run_id: string
  status: RunStatus
  started_at: string
  ended_at: string | null
  event_count: number
}

/** `GET /sessions/{id}` (api.md "SessionInfoResponse"). */
export type SessionSummary = { session_id: string; created_at: string; message_count: number }

/** One of `GET /permissions` (D4.12). `session_id` is what the reply's path begins with: a one-shot run's own id (D4.1). */
export type PermissionSummary = {
  id: string
  session_id: string
  run_id: string
  tool_name: string
  input: JsonObject
  message: string
  created_at: string
  expires_at: string
}

/** Which part of a list is wanted (D2.7). */
export type PageRequest = { limit: number; cursor?: string }

export type PermissionPage = { permissions: PermissionSummary[]; next_cursor: string | null }
export type RunPage = { runs: RunSummary[]; next_cursor: string | null }
export type RunFilter = PageRequest & { status?: RunStatus }

/** Whole frames, ready for the wire, up to and including number `lastSeq`. */
export type Frames = { text: string | Uint8Array; lastSeq: number }

/**
 * A run's frames from some number on: first what the journal holds, then live, everything there is merged into one value
 * per event-loop turn. Ends after the terminal frame. Leaving the iteration early means that this reader went away (D4.5).
 */
export type FrameStream = AsyncIterable<Frames>

/**
 * A place in a run's frames that is read step by step, for whoever packs many runs' frames together. `onNews` is called at most
 * once per event-loop turn, after the state may have become another.
 */
export interface FrameCursor {
  /** Number of the last frame taken. */
  readonly seq: number
  readonly state: 'waiting' | 'ready' | 'ended'
  onNews: () => void
  /** What is there, merged, when the state is `ready`; `undefined` when the next frame is no longer kept. */
  take(): Frames | undefined
  /** Goes back, or on, to after frame `seq`. */
  seek(seq: number): void
  /**
   * The reader has everything up to `seq`. Who takes frames on a reader's behalf says so, from before the first one on; with
   * everybody else what is taken is read.
   */
  confirm(seq: number): void
  /** The run waits for this reader. */
  readonly isWaitedFor: boolean
  /** The reader has gone. */
  close(): void
}

export type OpenedRun = { runId: string; frames: FrameStream }

/**
 * The gateway's way to the sessions and runs, wherever they live.
 *
 * Every method throws `not_found` for what the tenant does not have (a foreign id is an unknown id), and `unavailable` when the
 * owner cannot be reached. A run opened or followed is accepted: refusals come before the first frame.
 */
export interface Broker {
  /** Throws `conflict` when the id is taken, `rate_limit` when no worker has room. */
  createSession(tenant: TenantId, sessionId?: string): Promise<SessionSummary>
  getSession(tenant: TenantId, sessionId: string): Promise<SessionSummary>
  /** Aborts the session's runs with `session_deleted` (D4.7). */
  deleteSession(tenant: TenantId, sessionId: string): Promise<void>

  /** Throws `rate_limit` when every worker is full. */
  startRun(tenant: TenantId, request: RunRequest): Promise<OpenedRun>
  /** Waits its turn behind the session's earlier messages; throws `rate_limit` for the ninth that waits (D4.6). */
  sendMessage(tenant: TenantId, sessionId: string, message: MessageRequest): Promise<OpenedRun>

  listRuns(tenant: TenantId, filter: RunFilter): Promise<RunPage>
  getRun(tenant: TenantId, runId: string): Promise<RunSummary>
  /** Frames after number `after`; a terminal `stream_gap` when the journal no longer holds the next one. */
  followRun(tenant: TenantId, runId: string, after: number): Promise<FrameStream>
  cancelRun(tenant: TenantId, runId: string): Promise<void>

  /**
   * Decides a pending request of a session, or of the one-shot run `scopeId`. Returning means: the engine acts on this reply.
   * Throws `conflict` when a reply has decided it before, `not_found` when it timed out or never was.
   */
  replyPermission(tenant: TenantId, scopeId: string, requestId: string, reply: PermissionReply): Promise<void>
  /** What waits for the tenant's word, oldest first. */
  listPermissions(tenant: TenantId, page: PageRequest): Promise<PermissionPage>
}

/** A tool call that waits for its client's word (api.md "Permission request"). */
export type PendingPermission = {
  id: string
  tenant: TenantId
  /** The session, or the one-shot run: the first id of the reply's path. */
  scopeId: string
  runId: string
  details: Omit<PermissionSummary, 'id' | 'session_id' | 'run_id'>
}

export type PermissionKey = Pick<PendingPermission, 'tenant' | 'scopeId' | 'id'>

/** How a permission request ended. `expired`: nobody replied in time; `withdrawn`: its run ended first. */
export type PermissionDecision = { state: 'allowed' | 'denied' | 'expired' | 'withdrawn'; reason?: string }

/**
 * Where permission requests are decided: every decision is one compare-and-set from pending, so that replies, the timeout and
 * the end of the run have one winner between them (design §4.9).
 */
export interface PermissionStore {
  open(request: PendingPermission): Promise<void>
  /** Returns whether this call decided; if not, how it had been decided before (`undefined`: never opened, or forgotten). */
  decide(
    request: PermissionKey,
    decision: PermissionDecision,
  ): Promise<{ isWon: boolean; state: PermissionDecision['state'] | undefined }>
  /** Resolves once the request is decided. */
  decision(request: PermissionKey): Promise<PermissionDecision>
  /**
   * The tenant's requests that are undecided and in time, oldest first, of the runs that `isLive` lets pass. A page may be
   * shorter than its limit. Throws `invalid_request` for a cursor that is none.
   */
  list(tenant: TenantId, page: PageRequest, isLive?: (runId: string) => boolean): Promise<PermissionPage>
  /** Forgets the requests of a session or one-shot run, or of one run of a session: from now on replies find none. */
  forget(tenant: TenantId, scopeId: string, runId?: string): Promise<void>
}

/**
 * May this process still act for what it owns? Once it could not renew its lease, another may have taken its place (design §4.6):
 * it is asked right before each tool start, each message of frames and each write that must happen once.
 */
export interface Fence {
  /** Reckoned at each call from the last renewal, so that a process that was stopped refuses with its first instruction. */
  isHeld(): boolean
  /** Resolves when it is held, or when `signal` is aborted. */
  whenHeld(signal: AbortSignal): Promise<void>
}

/** Of a process that nobody can take the place of: the standalone form. */
export const ALWAYS_HELD: Fence = { isHeld: () => true, whenHeld: async () => {} }

/**
 * The same commands as they reach the process that owns the session or run. Ids come with them, so that whoever asked can
 * follow and cancel what it does not know the fate of. Refusals are thrown as the `Broker` promises them.
 */
export interface Inbox {
  createSession(tenant: TenantId, sessionId: string): SessionSummary
  getSession(tenant: TenantId, sessionId: string): SessionSummary
  deleteSession(tenant: TenantId, sessionId: string): Promise<void>
  startRun(tenant: TenantId, runId: string, request: RunRequest): void
  sendMessage(tenant: TenantId, runId: string, message: MessageRequest & { sessionId: string }): void
  listRuns(tenant: TenantId, filter: RunFilter): RunPage
  getRun(tenant: TenantId, runId: string): RunSummary
  followRun(tenant: TenantId, runId: string, after: number): FrameCursor
  cancelRun(tenant: TenantId, runId: string): void
}
