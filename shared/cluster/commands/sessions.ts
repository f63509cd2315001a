import type { ApiType } from '../../platform/api/api-type.ts'

export type MessageRequest = ApiType<'SendMessageRequest'>

export type SessionSummary = ApiType<'SessionInfoResponse'>
/** `incomplete`: the sessions of a worker that did not answer are missing. */
export type SessionPage = { sessions: SessionSummary[]; next_cursor: string | null; incomplete?: true }
/** A message that a new session begins with. */
export type SeedMessage = ApiType<'SeedMessage'>
export type MessagePage = ApiType<'ListMessagesResponse'>
