import type { RunErrorCode } from '../kernel/events.ts'
import type { TenantId } from '../kernel/tenant.ts'
import type { ApiType } from '../platform/api/api-type.ts'

/** Body of `POST /agent/run`, checked, without the fields that no run reads. */
export type RunRequest = Omit<ApiType<'RunRequest'>, 'stream' | 'tools' | 'provider_instance'>

export type MessageRequest = ApiType<'SendMessageRequest'>
export type PermissionReply = ApiType<'PermissionReplyRequest'>
/** A reply and the caller who sent it. */
export type SignedReply = PermissionReply & { by?: string }

export const RUN_STATUSES = ['running', 'waiting', 'done', 'failed', 'cancelled'] as const
export type RunStatus = ApiType<'RunStatus'>

/** `GET /runs/{run_id}` (D4.5g). */
export type RunSummary = ApiType<'Run'>

export type SessionSummary = ApiType<'SessionInfoResponse'>
/** `incomplete`: the sessions of a worker that did not answer are missing. */
export type SessionPage = { sessions: SessionSummary[]; next_cursor: string | null; incomplete?: true }
/** A message that a new session begins with. */
export type SeedMessage = ApiType<'SeedMessage'>
export type MessagePage = ApiType<'ListMessagesResponse'>

/** One item of `GET /permissions` (D4.12). `session_id` is the first id of the reply's path: a one-shot run's own id (D4.1). */
export type PermissionSummary = ApiType<'PendingPermission'>

/** Selects one page of a list (D2.7). */
export type PageRequest = { limit: number; cursor?: string }

/** One item of `GET /permissions?state=remembered`: a tool that is allowed for the rest of a session. */
export type RememberedPermission = ApiType<'RememberedPermission'>

export type RememberedPage = { permissions: RememberedPermission[]; next_cursor: string | null }
export type PermissionPage = { permissions: PermissionSummary[]; next_cursor: string | null }
/** `incomplete`: the runs of a worker that did not answer are missing. */
export type RunPage = { runs: RunSummary[]; next_cursor: string | null; incomplete?: true }
/** `among` the runs that have not ended (`live`), or those that have and whose record is not stored (`unrecorded`); all by default. */
export type RunFilter = PageRequest & { status?: RunStatus; among?: 'live' | 'unrecorded' }

/** The further filters of `GET /runs` where runs are recorded (D20). Times are in ISO 8601. */
export type RunSearch = {
  kind?: NonNullable<RunSummary['kind']>
  code?: NonNullable<RunSummary['code']>
  session_id?: string
  customer_id?: string
  subject?: string
  model?: string
  /** The earliest start. */
  since?: string
  /** All starts are before it. */
  until?: string
  /** The least US dollars. */
  min_cost?: number
}

/** The load of a tenant on a process at the moment. `waiting_runs`: those of its live runs that wait for their turn or for a permission. */
export type TenantLoad = { tenant: TenantId; live_runs: number; waiting_runs: number; sessions: number }
/** The first `limit` tenants whose names come after this one. */
export type TenantRange = { after: string; limit: number }

/** A place in a run's frames: just after frame `seq` and so many pieces of the next one, which is large when they are not 0. */
export type Position = { seq: number; pieces: number }

/** SSE frames, ready to be written to the client. The last whole one, here or before, has number `lastSeq`. */
export type Frames = {
  text: string | Uint8Array
  lastSeq: number
  /** Set when the text ends inside frame `lastSeq + 1`, which is large: how many of its pieces have come by now. */
  pieces?: number
  /** Set on the terminal frame that ends one reader's stream while the run itself may go on (D4.2). */
  failure?: RunErrorCode
}

/**
 * A run's frames from a given number on: first those that the journal holds, then each new one. Frames that are available in
 * the same event-loop turn arrive as one value. Ends after the terminal frame. A reader that leaves early returns the iterator,
 * which detaches it from the run (D4.5b).
 */
export type FrameStream = AsyncIterable<Frames>

/**
 * One reader's position in a run's frames, read step by step. The relay uses it to pack the frames of many runs into one message.
 * A cursor counts as a reader of its run until it is closed.
 */
export interface FrameCursor {
  /** Number of the last frame taken. */
  readonly seq: number
  /** How many pieces of the next frame were taken. */
  readonly pieces: number
  readonly state: 'waiting' | 'ready' | 'ended'
  /** Sets the listener; a cursor has one. It is called at most once per event-loop turn, when the state may have changed. */
  subscribe(listener: () => void): void
  /** Returns the available frames, or a piece of a large one, when the state is `ready`; `undefined` when the next is not kept. */
  take(): Frames | undefined
  /** Moves the position, back or forward. */
  seek(position: Position): void
  /**
   * Reports that the client has read everything up to this position. Call it once before the first `take` when the frames are taken
   * on behalf of a remote client. Without it, a frame counts as read when it is taken.
   */
  confirmRead(position: Position): void
  /** `true` while the reader is so far behind that the run waits for it. */
  readonly isTooFarBehind: boolean
  /** Removes the reader from the run. */
  close(): void
}

export type OpenedRun = { runId: string; frames: FrameStream }

/**
 * Gives the gateway access to sessions and runs, whichever worker holds them.
 *
 * Every method throws `not_found` for an id that is unknown or belongs to another tenant, and `unavailable` when the worker
 * cannot be reached. A run is refused before its first frame or not at all: once a method has returned frames, the worker has
 * accepted the run.
 */
export interface Broker {
  /** Throws `conflict` when the id is in use, `rate_limit` when every worker has its maximum of sessions. */
  createSession(tenant: TenantId, sessionId?: string, messages?: readonly SeedMessage[]): Promise<SessionSummary>
  getSession(tenant: TenantId, sessionId: string): Promise<SessionSummary>
  /** Lists the tenant's sessions, those created last first. */
  listSessions(tenant: TenantId, page: PageRequest): Promise<SessionPage>
  /** Lists the history of a session, oldest message first. */
  listMessages(tenant: TenantId, sessionId: string, page: PageRequest): Promise<MessagePage>
  renameSession(tenant: TenantId, sessionId: string, title: string): Promise<SessionSummary>
  /** Aborts the session's runs with `session_deleted` (D4.7). */
  deleteSession(tenant: TenantId, sessionId: string): Promise<void>

  /** Throws `rate_limit` when every worker has its maximum of runs. */
  startRun(tenant: TenantId, request: RunRequest): Promise<OpenedRun>
  /** The message is queued behind the session's earlier ones. Throws `rate_limit` when eight are queued already (D4.6). */
  sendMessage(tenant: TenantId, sessionId: string, message: MessageRequest): Promise<OpenedRun>

  /** Without records, only the runs that a process knows are listed. */
  listRuns(tenant: TenantId, filter: RunFilter & RunSearch): Promise<RunPage>
  getRun(tenant: TenantId, runId: string): Promise<RunSummary>
  /** Streams the frames after number `after`, or one terminal `stream_gap` when the journal no longer holds the next one. */
  followRun(tenant: TenantId, runId: string, after: number): Promise<FrameStream>
  cancelRun(tenant: TenantId, runId: string): Promise<void>

  /**
   * Decides a pending permission request of the session or one-shot run `scopeId`. When it resolves, the engine acts on this reply.
   * Throws `conflict` when an earlier reply decided the request, `not_found` when the request timed out or never existed.
   */
  replyPermission(tenant: TenantId, scopeId: string, requestId: string, reply: SignedReply): Promise<void>
  /** Finds a pending permission request of the session or one-shot run `scopeId`. */
  findPermission(tenant: TenantId, scopeId: string, requestId: string): Promise<PermissionSummary | undefined>
  /** Lists the tenant's pending permission requests, oldest first. */
  listPermissions(tenant: TenantId, page: PageRequest): Promise<PermissionPage>
  /** Lists the tools that are allowed for the rest of the tenant's sessions, newest first. */
  listRemembered(tenant: TenantId, page: PageRequest): Promise<RememberedPage>
  /**
   * Calls of this tool, or without a name of all tools, need permission again in the session. Returns the number of tools. Throws
   * `not_found` for a tool that is not remembered.
   */
  forgetRemembered(tenant: TenantId, sessionId: string, toolName?: string): Promise<number>
}

/**
 * States whether this process may still act for the sessions and runs it owns. A process that could not renew its lease may have
 * been replaced by another (`shared/cluster/README.md` "Membership and leases"). Callers check immediately before each tool start,
 * each message of frames and each write that must happen once.
 */
export interface Fence {
  /** Computed at each call from the time of the last renewal: a process that was suspended gets `false` as soon as it continues. */
  isHeld(): boolean
  /** When the lease ends unless it is renewed, by `performance.now()`; `-Infinity` when it is not held. */
  heldUntil(): number
  /** Resolves when the lease is held, or when `signal` is aborted. */
  whenHeld(signal: AbortSignal): Promise<void>
}

/** The fence of the standalone form, where no other process can take over. */
export const ALWAYS_HELD: Fence = { isHeld: () => true, heldUntil: () => Infinity, whenHeld: async () => {} }

/**
 * Receives the commands of the `Broker` in the process that owns the session or run, and throws the same errors. The caller
 * chooses the ids of new sessions and runs, so it can follow or cancel a run even when the answer to its command was lost.
 */
export interface Inbox {
  /** `token` is this creation's own: a session of the same id that is created later has another. */
  createSession(tenant: TenantId, sessionId: string, token: string, messages?: readonly SeedMessage[]): SessionSummary
  getSession(tenant: TenantId, sessionId: string): SessionSummary
  listSessions(tenant: TenantId, page: PageRequest): SessionPage
  listMessages(tenant: TenantId, sessionId: string, page: PageRequest): MessagePage
  renameSession(tenant: TenantId, sessionId: string, title: string): SessionSummary
  /** With a token, throws `not_found` for a session that was created with another one. */
  deleteSession(tenant: TenantId, sessionId: string, token?: string): Promise<void>
  /** The run begins, but calls no tool and records nothing before `acceptRun`. So does that of a message. */
  startRun(tenant: TenantId, runId: string, request: RunRequest): void | Promise<void>
  sendMessage(tenant: TenantId, runId: string, message: MessageRequest & { sessionId: string }): void | Promise<void>
  /** A gateway has sent the run's id to the client, or a client follows the run: the run may act. */
  acceptRun(tenant: TenantId, runId: string): void
  listRemembered(tenant: TenantId, page: PageRequest): RememberedPage
  forgetRemembered(tenant: TenantId, sessionId: string, toolName?: string): number
  listRuns(tenant: TenantId, filter: RunFilter): RunPage
  /** Lists the tenants that have live runs or sessions here, by name. It is for operators alone. */
  listTenants(range: TenantRange): TenantLoad[]
  getRun(tenant: TenantId, runId: string): RunSummary
  followRun(tenant: TenantId, runId: string, after: number): FrameCursor
  cancelRun(tenant: TenantId, runId: string): void
}

/** The commands that an executor receives: its runs come from the queue. */
export type RunInbox = Pick<Inbox, 'listRuns' | 'listTenants' | 'getRun' | 'followRun' | 'cancelRun'>

/**
 * The state of a queued run. `executor` is the epoch of the executor that runs it or has run it. A run that ended before an executor
 * began it has none, and `code` tells its readers why (`worker_lost` if left out).
 */
export type QueuedRunState =
  | { state: 'queued'; started_at: string }
  | { state: 'running' | 'ended'; executor: number }
  | { state: 'ended'; executor: null; code?: 'cancelled' | 'worker_lost' }

/** Where the runs are that were queued for an executor (`isQueuedRun`). Every method throws `unavailable` when the store is away. */
export interface QueuedRunSource {
  /** `undefined` for an unknown run and for another tenant's. */
  find(tenant: TenantId, runId: string): Promise<QueuedRunState | undefined>
  /** Takes a run out of the queue and ends it. Returns `false` when it is not queued any more. Without it, a queued run cannot be cancelled. */
  cancelQueued?(tenant: TenantId, runId: string): Promise<boolean>
}
