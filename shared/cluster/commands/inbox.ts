import type { PageRequest } from '../../kernel/cursor.ts'
import type { Steer } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import type { FrameCursor } from '../journal/frame-stream.ts'
import type { RememberedPage } from '../permissions/remembered-page.ts'
import type { RunFilter, RunPage, RunRequest, RunSummary } from './runs.ts'
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
import type { TenantLoad, TenantRange } from './tenant-loads.ts'

/** A promise if the data is not in memory and must be read from the store first. */
type MayWait<T> = T | Promise<T>

/**
 * Receives the commands of the `Broker` in the process that owns the session or run, and throws the same errors. The caller
 * chooses the ids of new sessions and runs, so it can follow or cancel a run even when the answer to its command was lost.
 */
export interface Inbox {
  /** `token` identifies this creation: a later session with the same id has another one. */
  createSession(tenant: TenantId, sessionId: string, token: string, begin?: SessionBegin): MayWait<SessionSummary>
  /** The branch that ends with a message, by its id or that of a run. Throws `invalid_request` for an unknown one. */
  branchOf(tenant: TenantId, sessionId: string, at: string): MayWait<SessionBranch>
  getSession(tenant: TenantId, sessionId: string): MayWait<SessionSummary>
  listSessions(tenant: TenantId, page: PageRequest): SessionPage
  listMessages(tenant: TenantId, sessionId: string, page: MessageFilter): MayWait<MessagePage>
  renameSession(tenant: TenantId, sessionId: string, title: string): MayWait<SessionSummary>
  /** With a token, throws `not_found` for a session that was created with another one. */
  deleteSession(tenant: TenantId, sessionId: string, token?: string): Promise<void>
  /**
   * The run begins only after `acceptRun`; so does the run of a message, when its turn has come. Before that, no
   * history contains anything of it (D36.1).
   */
  startRun(tenant: TenantId, runId: string, request: RunRequest): MayWait<void>
  sendMessage(tenant: TenantId, runId: string, message: MessageRequest & { sessionId: string }): MayWait<void>
  estimateRun(tenant: TenantId, request: RunRequest): Promise<ApiType<'Estimate'>>
  /**
   * Called when a gateway has sent the run's id to the client, or a client follows the run. For a background run, this
   * fact is stored when it resolves.
   */
  acceptRun(tenant: TenantId, runId: string): MayWait<void>
  /**
   * Lists the folder of a session, or of a run that has its own folder. Throws `not_found` when there is none, and
   * `unavailable` when it is not on this machine yet.
   */
  listFiles(tenant: TenantId, scopeId: string, page: FolderPage): Promise<FolderFiles>
  /** Reads a part of a file in such a folder. Throws `invalid_request` for a path that leaves it. */
  readFile(tenant: TenantId, scopeId: string, part: { path: string; from: number }): Promise<FilePiece>
  listRemembered(tenant: TenantId, page: PageRequest): RememberedPage
  forgetRemembered(tenant: TenantId, sessionId: string, toolName?: string): MayWait<number>
  listRuns(tenant: TenantId, filter: RunFilter): RunPage
  /** Lists the tenants that have live runs or sessions here, by name. Only for operators. */
  listTenants(range: TenantRange): TenantLoad[]
  getRun(tenant: TenantId, runId: string): RunSummary
  followRun(tenant: TenantId, runId: string, after: number): FrameCursor
  /** Throws `conflict` when the run has ended or accepts no more texts, and `rate_limit` when too many texts wait for its model. */
  steerRun(tenant: TenantId, runId: string, steer: Steer): MayWait<void>
  /** `isAccepted: false`: the client has received a refusal. A run that no client knows leaves no trace. */
  cancelRun(tenant: TenantId, runId: string, client?: { isAccepted: boolean }): MayWait<void>
}

/** The commands that an executor receives: its runs come from the queue. */
export type RunInbox = Pick<
  Inbox,
  'listRuns' | 'listTenants' | 'getRun' | 'followRun' | 'cancelRun' | 'listFiles' | 'readFile'
>
