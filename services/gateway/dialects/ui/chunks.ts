import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { frameJson } from '../../../../shared/kernel/json.ts'

/** A chunk of the AI SDK's UI message stream that versions 6 and 7 of the package `ai` take (its `uiMessageChunkSchema`), as far as this server sends them. */
export type UiChunk =
  | { type: 'start'; messageId: string; messageMetadata: JsonObject }
  | { type: 'start-step' | 'finish-step' }
  | { type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; id: string }
  | { type: 'text-delta' | 'reasoning-delta'; id: string; delta: string }
  | ({ type: 'tool-input-available'; toolName: string; input: unknown } & OfTool)
  | ({ type: 'tool-output-available'; output: unknown } & OfTool)
  | ({ type: 'tool-output-error'; errorText: string } & OfTool)
  | { type: 'tool-output-denied'; toolCallId: string }
  | {
      type: 'tool-approval-request'
      approvalId: string
      toolCallId: string
      reason: string
      approvalDescriptor: JsonObject
    }
  | { type: `data-${string}`; id?: string; data: JsonObject; transient?: true }
  | { type: 'file'; url: string; mediaType: string }
  | { type: 'message-metadata'; messageMetadata: JsonObject }
  | { type: 'error'; errorText: string }
  | { type: 'abort'; reason: string }
  | { type: 'finish'; finishReason: 'stop' | 'tool-calls' | 'error' | 'other'; messageMetadata?: JsonObject }

/** `dynamic` and `providerExecuted` mark tools of the server, which the page does not know. The page's own tools have neither field (D46.3). */
type OfTool = { toolCallId: string; dynamic?: true; providerExecuted?: true; toolMetadata?: { subagentId: string } }

const renderChunks = (chunks: readonly UiChunk[]): string =>
  chunks.map((chunk) => `data: ${frameJson(chunk)}\n\n`).join('')

export const UI_WIRE = { render: renderChunks, end: 'data: [DONE]\n\n' }
