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
   * The ids of the messages before it, of messages or of runs: it follows the last one that the session has. An empty list begins a branch.
   * If it is left out, a message with the id of an earlier one becomes another version of that one.
   */
  path?: readonly string[]
  /** The texts of the user's messages at the end of `path`, by their ids: a message that has failed and its edited one may have the same id. */
  texts?: Readonly<Record<string, string>>
  /** What the branch that it begins has before it. */
  seed?: readonly SeedMessage[]
}

export type SessionSummary = ApiType<'SessionInfoResponse'>
/** One branch of a session, as the worker that creates a session with it takes it. `workspace` names the folder as it was at its end, where that is known. */
export type SessionBranch = {
  messages: readonly unknown[]
  title: string | null
  from: NonNullable<SessionSummary['from']>
  workspace?: string
}

/** What a session begins with. */
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

/** A part of a file, whose size and time say whether it is still the same. */
export type FilePiece = { base64: string; bytes: number; modified_ms: number }
