import type { ToolResultBlock } from '../providers/port.ts'
import type { AgentReport } from '../tools/port.ts'

/** A permission request, so that another process can wait for the same decision. */
export type AskState = { id: string; created_at: string; expires_at: string }

/** What is known of a tool call. `hasBegun`: it may have had an effect. */
export type CallState = { ask?: AskState; hasBegun?: true; result?: ToolResultBlock }

/** What is known of a sub-agent. Without a report it may have had an effect. */
export type AgentState = { report?: AgentReport }

/** What an agent's tool calls store before they have an effect. */
export interface CallProgress {
  earlier(callId: string): CallState | undefined
  /** The call may have an effect from now on. Resolves with `false` when it must have none. */
  begin(callId: string): Promise<boolean>
  /** The client is about to be asked. Resolves with `false` when it must not be. */
  ask(callId: string, ask: AskState): Promise<boolean>
  end(callId: string, result: ToolResultBlock): void
  earlierAgent(key: string): AgentState | undefined
  endAgent(key: string, report: AgentReport): void
  /** The progress of a sub-agent. It is not stored turn by turn: one that has had no effect begins anew. */
  ofAgent(key: string): CallProgress
}
