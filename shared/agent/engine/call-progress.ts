import type { JsonObject } from '../../kernel/events.ts'
import type { ToolResultBlock } from '../providers/port.ts'
import type { AgentReport } from '../tools/port.ts'

/** A permission request, so that another process can wait for the same decision. */
export type AskState = { id: string; created_at: string; expires_at: string }

/** A tool call that needs a permission. */
export type AskingCall = { id: string; toolName: string; input: JsonObject }

/** A permission request of a sub-agent. `call`: what it asks for, which tells it from others when the sub-agent has begun anew. */
export type AgentAsk = AskState & { call: string }

/** What is known of a tool call. `hasBegun`: it may have had an effect. */
export type CallState = { ask?: AskState; hasBegun?: true; result?: ToolResultBlock }

/** What is known of a sub-agent. Without a report it may have had an effect. */
export type AgentState = { report?: AgentReport }

/** A file that was changed, and what has changed is on this machine only. `mtimeMs` is its time since 1970, as whole milliseconds. */
export type UnstoredFile = { path: string; mtimeMs: number }

/** What an agent's tool calls store before they have an effect. */
export interface CallProgress {
  earlier(callId: string): CallState | undefined
  /** The call may have an effect from now on. Resolves with `false` when it must have none. */
  begin(callId: string): Promise<boolean>
  /** The request of an earlier process for the same call. Of a sub-agent, whose calls have other ids now, it is one for an equal call. */
  earlierAsk(call: AskingCall): AskState | undefined
  /** The client is about to be asked. Resolves with `false` when it must not be. */
  ask(call: AskingCall, ask: AskState): Promise<boolean>
  /** `isAnswer`: the client has made the call. Its answer counts although the call had no effect here. */
  end(callId: string, result: ToolResultBlock, isAnswer?: boolean): void
  /** After a call that may have changed files: those of which the store lacks the newest content. */
  noteFiles(files: readonly UnstoredFile[]): void
  /** The files that an earlier process had changed and that are not here, once. */
  takeLostFiles(): readonly string[]
  earlierAgent(key: string): AgentState | undefined
  endAgent(key: string, report: AgentReport): void
  /** The progress of a sub-agent. It is not stored turn by turn: one that has had no effect begins anew. */
  ofAgent(key: string): CallProgress
}
