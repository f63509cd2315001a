import type { JsonObject, PermissionPreview, PermissionResolution } from '../../kernel/events.ts'
import type { ToolOutcome } from '../tools/port.ts'
import type { AskState } from './call-progress.ts'
import type { RememberedTools } from './remembered-tools.ts'

/** The answer to an ask, with the fields of its reply and its event: a permission, or the result of a call that the client executes (`answer`). */
export type Decision = {
  allow: boolean
  how: PermissionResolution
  /** May be empty. */
  reason: string
  /** The tool is allowed for the rest of the session. */
  remember?: 'session'
  /** The caller who replied. */
  by?: string
  /** The input that the call runs with instead of the model's. */
  input?: JsonObject
  answer?: ToolOutcome
}

/**
 * An open permission request, or a call that the client executes: its id, which is part of the reply's path, its deadline, and the promise of its
 * decision. The end of the run also decides it: the promise resolves within a second after the run's signal is aborted, and the run ends only then.
 */
export type Ask = { id: string; expiresAt: string; decision: Promise<Decision> }

/** Opens an ask of a run. The promise resolves after the request is stored, so that no reply can come too early. */
export type OpenAsk = (request: AskRequest) => Promise<Ask>

export type AskRequest = {
  /** Set for a call that the client executes (D45). Left out: the client is asked for permission. */
  kind?: 'tool_call'
  toolUseId: string
  toolName: string
  input: JsonObject
  message: string
  preview?: PermissionPreview | undefined
  /** The request that an earlier process has opened for the same call; its decision is used. */
  earlier?: AskState | undefined
  /** Called before the request is opened. */
  keep?(ask: AskState): Promise<void>
}

/** Whether the run and its sub-agents may only read, until its plan is approved (`plan_mode`, D5.4). */
export type PlanMode = { isOn: boolean }

/** How a run asks its client for permission, which tools need none, and what the run may not do. */
export type Permissions = {
  openAsk: OpenAsk
  remembered?: RememberedTools
  planMode?: PlanMode
  /** The run ends with the client's calls, instead of waiting for their answers. */
  endsWithCalls?: boolean
}
