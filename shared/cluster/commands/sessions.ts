import type { PageRequest } from '../../kernel/cursor.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import type { SeedMessage, WithFiles } from './runs.ts'

export type { SeedMessage } from './runs.ts'

/** Body of `POST /sessions/{id}/messages`, checked. `system_prompt` is for this message, where a dialect has one (D31). */
export type MessageRequest = ApiType<'SendMessageRequest'> & { system_prompt?: string } & ListedMessage & WithFiles
/** A message in the list of a client (D38). */
export type ListedMessage = {
  /** The client's own id of the message. */
  id?: string
  /**
   * The ids of the messages or runs before it: it follows the last one that the session has. An empty list begins a branch. If left out, a
   * message with the id of an earlier one becomes another version of that one.
   */
  path?: readonly string[]
  /** The texts of the user's messages at the end of `path`, by their ids: a failed message and its edited version may have the same id. */
  texts?: Readonly<Record<string, string>>
  /** The messages before it, if it begins a branch. */
  seed?: readonly SeedMessage[]
}

export type SessionSummary = ApiType<'SessionInfoResponse'>
/**
 * One branch of a session, in the form in which a worker creates a session from it. `workspace` names the folder in its
 * state at the end of the branch, if known.
 */
export type SessionBranch = {
  messages: readonly unknown[]
  title: string | null
  from: NonNullable<SessionSummary['from']>
  workspace?: string
}

/** The initial content of a session. */
export type SessionBegin = readonly SeedMessage[] | SessionBranch

/** `incomplete`: the sessions of a worker that did not answer are missing. */
export type SessionPage = { sessions: SessionSummary[]; next_cursor: string | null; incomplete?: true }
/**
 * `runId`: only the messages that this run has added. `head`: those up to this message, or to the end of this run; by default up to the newest.
 * A worker of an older version knows no such filters.
 */
export type MessageFilter = PageRequest & { runId?: string; head?: string }
export type MessagePage = ApiType<'ListMessagesResponse'>

/** A file in the folder of a session or of a one-shot run. */
export type FolderFile = { path: string; bytes: number; sha256: string; modified_ms: number }

/** `after`: the path of the last file of the page before. */
export type FolderPage = { limit: number; after?: string }
export type FolderFiles = { files: FolderFile[]; has_more: boolean }

/** A part of a file. The size and time show whether the file is still the same. */
export type FilePiece = { base64: string; bytes: number; modified_ms: number }
