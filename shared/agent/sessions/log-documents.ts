import { SYSTEM_TENANT, type TenantId } from '../../kernel/tenant.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import type { CollectionSpec, OwnedDocument } from '../../platform/store/port.ts'
import type { Message } from '../providers/port.ts'
import type { ClientTool } from '../tools/client-tools.ts'
import { isOneShotSession } from './one-shot.ts'
import type { RunsEntry } from './open-runs.ts'

/**
 * The entries of all sessions' logs. `workspace` identifies the session: another session with the same id has another one. The places of a log
 * are numbered without gaps, and each is taken once: a process that finds the next place taken does not own the session.
 */
export const SESSION_LOG: CollectionSpec = {
  name: 'session_log',
  key: ['workspace', 'seq'],
  order: { within: ['workspace'], by: ['seq'], direction: 'descending' },
  expiresBy: 'expires_ms',
}

/**
 * The logs of one-shot runs, all stored under one tenant, so that one query finds those of all tenants. In the first entry of a run, `busy_at` names
 * the process that has it, so that the run is found without another mark when that process has died (D32.8). In other entries `busy_at` is empty.
 */
export const ONE_SHOT_LOG: CollectionSpec = {
  name: 'one_shot_log',
  key: ['of_tenant', 'workspace', 'seq'],
  order: { within: [], by: ['of_tenant', 'workspace', 'seq'], direction: 'descending' },
  filters: ['busy_at'],
  expiresBy: 'expires_ms',
}

type Summary = ApiType<'SessionInfoResponse'>
/** The facts that a list shows of a session that is in no worker's memory. */
export type SessionFacts = Pick<
  Summary,
  'title' | 'message_count' | 'last_message_at' | 'model' | 'usage' | 'remembered' | 'from'
>

/** The facts of a session without an entry. */
export const NO_FACTS: SessionFacts = {
  title: null,
  message_count: 0,
  last_message_at: null,
  model: null,
  usage: { input_tokens: 0, output_tokens: 0, cost_usd: 0, turns: 0 },
  remembered: [],
}

/** An entry that a session's owner adds to its log: the messages since the last entry, and the state of the session after them. */
export type LogEntry = {
  /** When the session was used, in ISO 8601. */
  at: string
  facts: SessionFacts
  messages: readonly Message[]
  /** The session's memories, if they have changed. */
  memories?: readonly string[]
  /** The tools of the session's client, if they have changed (D45.3). */
  client_tools?: readonly ClientTool[]
  /** The changes of its messages' runs. */
  runs?: RunsEntry
  /** Set when the entry has the whole history, all memories and all open runs: earlier entries are then only needed for runs that have ended. */
  isBase?: true
  /** Set when the creation of the session was refused, so that its stored data is not valid. */
  isRefused?: true
}

/** An entry, and the place at which it begins. */
export type PlacedEntry = LogEntry & { seq: number }

/** An entry that one owner adds at a place; a long entry also takes the following places. */
export type LogWrite = {
  tenant: TenantId
  sessionId: string
  workspace: string
  seq: number
  owner: string
  entry: LogEntry
  expiresMs: number
  /** For the first entry of a one-shot run: the process that has the run. */
  busyAt?: string | undefined
}

/** A longer entry is divided: a document holds at most 8 MiB, and a character takes up to three bytes. */
const PIECE_CHARS = 2 * 1024 * 1024

/** A part of an entry's JSON text; nearly always there is only one part. `left`: how many parts follow. */
type Piece = { at: number; left: number; piece: string }
/** A document of a log, as it is stored. An undivided entry of a one-shot run is stored in it as fields, not as text. */
export type LogDocument = { workspace: string; seq: number; owner: string; expires_ms: number } & (
  | Piece
  | { entry: LogEntry }
)

/** The documents of an entry, in the order of their places. */
export function documentsOf(write: LogWrite): OwnedDocument[] {
  const { tenant, sessionId, workspace, seq, owner, entry, expiresMs, busyAt = '' } = write
  const isOneShot = isOneShotSession(sessionId)
  const place = {
    workspace,
    seq,
    owner,
    expires_ms: expiresMs,
    ...(isOneShot && { of_tenant: tenant, busy_at: busyAt }),
  }
  const text = JSON.stringify(entry)
  const by = isOneShot ? SYSTEM_TENANT : tenant
  if (isOneShot && text.length <= PIECE_CHARS)
    return [{ tenant: by, doc: place, json: `${JSON.stringify(place).slice(0, -1)},"entry":${text}}` }]
  const pieces = piecesOf(text)
  return pieces.map((piece, at) => {
    const doc = { ...place, seq: seq + at, at, left: pieces.length - 1 - at, piece }
    return { tenant: by, doc: doc satisfies LogDocument }
  })
}

function piecesOf(text: string): string[] {
  const pieces: string[] = []
  for (let start = 0; start < text.length; start += pieces.at(-1)?.length ?? 0) {
    const end = start + PIECE_CHARS
    pieces.push(text.slice(start, isFirstHalf(text.charCodeAt(end - 1)) ? end - 1 : end))
  }
  return pieces
}

/** Whether the character is the first half of a surrogate pair. */
const isFirstHalf = (code: number): boolean => code >= 0xd800 && code <= 0xdbff

/** Puts entries together from the documents of a log, the newest first. An entry whose owner died before its last piece is left out. */
export class EntryReader {
  #owner = ''
  /** The pieces of the entry that is being read, in the order of the text. */
  #pieces: string[] = []

  /** Returns the entry that begins with this document. */
  read(document: LogDocument): LogEntry | undefined {
    if ('entry' in document) return document.entry
    const { owner, at, left, piece } = document
    const isNext = this.#pieces.length === left && (left === 0 || owner === this.#owner)
    this.#pieces = isNext ? [piece, ...this.#pieces] : left === 0 ? [piece] : []
    this.#owner = owner
    if (at > 0 || this.#pieces.length <= left) return undefined
    const text = this.#pieces.join('')
    this.#pieces = []
    return JSON.parse(text) as LogEntry
  }
}
