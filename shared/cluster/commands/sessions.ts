import type { PageRequest } from '../../kernel/cursor.ts'
import type { ApiType } from '../../platform/api/api-type.ts'

/** Body of `POST /sessions/{id}/messages`, checked. `system_prompt` is for this message, where a dialect has one (D31). */
export type MessageRequest = ApiType<'SendMessageRequest'> & { system_prompt?: string }

export type SessionSummary = ApiType<'SessionInfoResponse'>
/** `incomplete`: the sessions of a worker that did not answer are missing. */
export type SessionPage = { sessions: SessionSummary[]; next_cursor: string | null; incomplete?: true }
/** A message that a new session begins with. */
export type SeedMessage = ApiType<'SeedMessage'>
/** `runId`: only the messages that this run has added. A worker of an older version knows no such filter. */
export type MessageFilter = PageRequest & { runId?: string }
export type MessagePage = ApiType<'ListMessagesResponse'>
