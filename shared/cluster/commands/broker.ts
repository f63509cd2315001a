import type { PageRequest } from '../../kernel/cursor.ts'
import type { Steer } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import type { FrameStream } from '../journal/frame-stream.ts'
import type { RememberedPage } from '../permissions/remembered-page.ts'
import type { SignedAnswer, SignedReply } from '../permissions/reply.ts'
import type { ListedAsks, PermissionPage, PermissionSummary } from '../permissions/store.ts'
import type { RunFilter, RunPage, RunReader, RunRequest, RunSearch, RunSummary } from './runs.ts'
import type {
  FilePiece,
  FolderFiles,
  FolderPage,
  MessageFilter,
  MessagePage,
  MessageRequest,
  SessionBegin,
  SessionBranch,
  SessionPage,
  SessionSummary,
} from './sessions.ts'

export type OpenedRun = { runId: string; frames: FrameStream }

/**
 * Called with the id of a run before a worker is asked to start it. Each further worker that is asked gets another id. The worker is asked when the
 * promise has resolved, and is not asked when it rejects.
 */
export type OnNamed = (runId: string) => Promise<void>

/**
 * Gives the gateway access to sessions and runs, whichever worker has them.
 *
 * Every method throws `not_found` for an id that is unknown or belongs to another tenant, and `unavailable` when the worker
 * cannot be reached. A run is refused before its first frame or not at all: once a method has returned frames, the worker has
 * accepted the run.
 */
export interface Broker {
  /** Throws `conflict` when the id is in use, `rate_limit` when every worker has its maximum of sessions. */
  createSession(tenant: TenantId, sessionId?: string, begin?: SessionBegin): Promise<SessionSummary>
  /** The branch of a session that ends with a message, by its id or that of a run. Throws `invalid_request` for an unknown one. */
  branchOf(tenant: TenantId, sessionId: string, at: string): Promise<SessionBranch>
  getSession(tenant: TenantId, sessionId: string): Promise<SessionSummary>
  /** Lists the tenant's sessions, those created last first. */
  listSessions(tenant: TenantId, page: PageRequest): Promise<SessionPage>
  /** Lists the history of a session, oldest message first. */
  listMessages(tenant: TenantId, sessionId: string, page: MessageFilter): Promise<MessagePage>
  renameSession(tenant: TenantId, sessionId: string, title: string): Promise<SessionSummary>
  /** Aborts the session's runs with `session_deleted` (D4.7). */
  deleteSession(tenant: TenantId, sessionId: string): Promise<void>

  /** Throws `rate_limit` when every worker has its maximum of runs. */
  startRun(tenant: TenantId, request: RunRequest, onNamed?: OnNamed): Promise<OpenedRun>
  /**
   * Estimates the first model call of `startRun` and its cost, without starting anything. Throws the same errors as
   * `startRun` for a request that cannot be run (D57).
   */
  estimateRun(tenant: TenantId, request: RunRequest): Promise<ApiType<'Estimate'>>
  /** The message is queued behind the session's earlier ones. Throws `rate_limit` when eight are queued already (D4.6). */
  sendMessage(tenant: TenantId, sessionId: string, message: MessageRequest, onNamed?: OnNamed): Promise<OpenedRun>

  /** Without records, only the runs that a process knows are listed. */
  listRuns(tenant: TenantId, filter: RunFilter & RunSearch): Promise<RunPage>
  getRun(tenant: TenantId, runId: string): Promise<RunSummary>
  /** Streams the frames after number `after`, or one terminal `stream_gap` when the journal no longer holds the next one. */
  followRun(tenant: TenantId, runId: string, after: number): Promise<FrameStream>
  /**
   * Opens a stream for a run that is about to be queued: its job names the place to which the executor sends the frames. The caller follows the run
   * once it is queued. Left out if runs are executed in this process.
   */
  expectRun?(tenant: TenantId, runId: string): RunReader
  cancelRun(tenant: TenantId, runId: string): Promise<void>
  /**
   * Sends a run a text that its model reads at its next call. Repeating it with the same `id` changes nothing. Throws
   * `conflict` when the run has ended.
   */
  steerRun(tenant: TenantId, runId: string, steer: Steer): Promise<void>

  /** Lists the folder of a session, or of a run that has its own folder, by path. */
  listFiles(tenant: TenantId, scopeId: string, page: FolderPage): Promise<FolderFiles>
  /** Reads a part of a file in such a folder. Throws `invalid_request` for a path that leaves it. */
  readFile(tenant: TenantId, scopeId: string, part: { path: string; from: number }): Promise<FilePiece>

  /**
   * Decides a pending permission request of the session or one-shot run `scopeId`. When it resolves, the engine acts on this reply.
   * Throws `conflict` when an earlier reply decided the request, `not_found` when the request timed out or never existed.
   */
  replyPermission(tenant: TenantId, scopeId: string, requestId: string, reply: SignedReply): Promise<void>
  /** The same for a call that the client executes: `requestId` is its `clientCallId`. */
  answerCall(tenant: TenantId, scopeId: string, requestId: string, answer: SignedAnswer): Promise<void>
  /** Finds a pending permission request of the session or one-shot run `scopeId`, or without it of any of the tenant. */
  findPermission(
    tenant: TenantId,
    scopeId: string | undefined,
    requestId: string,
  ): Promise<PermissionSummary | undefined>
  /** Lists the tenant's pending permission requests, or the open calls that clients execute, oldest first. */
  listPermissions(tenant: TenantId, page: ListedAsks): Promise<PermissionPage>
  /** Lists the tools that are allowed for the rest of the tenant's sessions, newest first. */
  listRemembered(tenant: TenantId, page: PageRequest): Promise<RememberedPage>
  /**
   * Makes calls of this tool (without a name, of all tools) need permission again in the session. Returns the number of tools. Throws
   * `not_found` for a tool that is not remembered.
   */
  forgetRemembered(tenant: TenantId, sessionId: string, toolName?: string): Promise<number>
}
