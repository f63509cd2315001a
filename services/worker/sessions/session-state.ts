import type { ConversationState } from '../../../shared/agent/engine/conversation.ts'
import type { KnownSteer } from '../../../shared/agent/engine/messages/steering.ts'
import type { RememberedTool } from '../../../shared/agent/engine/remembered-tools.ts'
import type { EarlierRun } from '../../../shared/agent/sessions/open-runs.ts'
import type { ClientTool } from '../../../shared/agent/tools/client-tools.ts'
import type { MessageRequest, SessionSummary } from '../../../shared/cluster/commands/sessions.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { LogState } from './session-log.ts'
import type { SessionUsageState } from './session-usage.ts'

/** `token` distinguishes this session from earlier and later ones with the same id. */
export type SessionIdentity = { id: string; tenant: TenantId; token: string }

/** A message that waits for its turn: it was accepted, and its run is known to the client. */
export type WaitingMessage = {
  runId: string
  startedAt: string
  message: MessageRequest
  /** `false`: the client may have received a refusal. */
  isConfirmed?: boolean
  /** Texts that people have sent to its running run. */
  steers?: readonly KnownSteer[]
  /** The part of the run that another worker had done before it died. */
  earlier?: EarlierRun | undefined
  /** The place of the first log entry about the run. */
  fromSeq?: number | undefined
}

/** The state that another worker needs to continue a session. */
export type SessionState = SessionIdentity &
  ConversationState & {
    createdAt: string
    title?: string | undefined
    /** The session that it was forked from. */
    from?: SessionSummary['from'] | undefined
    used?: SessionUsageState | undefined
    /** Names the folder of the session's tools; derived from the first token by default. */
    workspace?: string
    memories?: readonly string[] | undefined
    /** The tools of its client (D45.3). */
    clientTools?: readonly ClientTool[] | undefined
    remembered?: readonly RememberedTool[] | undefined
    /** Left out: the session is not stored. */
    log?: LogState | undefined
    waiting?: readonly WaitingMessage[]
  }
