import { SYSTEM_TENANT, type TenantId } from '../../kernel/tenant.ts'
import type { Collection, OwnedDocument, PageQuery, Store, Stored } from '../../platform/store/port.ts'
import {
  documentsOf,
  EntryReader,
  type LogDocument,
  type LogEntry,
  type LogWrite,
  ONE_SHOT_LOG,
  type PlacedEntry,
  SESSION_LOG,
} from './log-documents.ts'
import { isOneShotSession } from './one-shot.ts'

const PAGE = 50
const MAX_DELETED = 500

/** The outcome of a write: how many places the entry takes, and whether this owner has them. */
export type Appended = { places: number; isOwn: boolean }

/** Identifies a log: `workspace` alone is unique for a session or a one-shot run. */
export type LogName = { tenant: TenantId; session_id: string; workspace: string }

type Reading = { batch?: number; onNewest?: (seq: number) => void }

/** The log of a one-shot run, and the last place that it has taken. */
export type EndedLog = { tenant: TenantId; workspace: string; last: number }

/** The logs of sessions, and those of one-shot runs, which are in a collection of their own. */
export class SessionLogs {
  readonly #sessions: Collection
  readonly #oneShots: Collection

  constructor(store: Store) {
    this.#sessions = store.collection(SESSION_LOG)
    this.#oneShots = store.collection(ONE_SHOT_LOG)
  }

  /** The newest entry of a log. */
  async last(name: LogName): Promise<LogEntry | undefined> {
    for await (const entry of this.entries(name, { batch: 1 })) return entry
    return undefined
  }

  /** The entries of a log, the newest first. `onNewest` is called with the place of the newest document, unless there is none. */
  async *entries(name: LogName, { batch = PAGE, onNewest }: Reading): AsyncGenerator<PlacedEntry> {
    const reader = new EntryReader()
    let after: number | undefined
    for (let limit = batch; ; limit = PAGE) {
      const found = await this.#page(name, after, limit)
      for (const { doc } of found) {
        const read = doc as LogDocument
        if (after === undefined) onNewest?.(read.seq)
        after = read.seq
        const entry = reader.read(read)
        if (entry) yield { ...entry, seq: read.seq }
      }
      if (found.length < limit) return
    }
  }

  /**
   * Adds entries with one command for each kind of log. An entry that an earlier attempt without an answer has already
   * added counts as the owner's own.
   */
  async append(writes: readonly LogWrite[]): Promise<Appended[]> {
    const all = writes.map((write) => ({ write, docs: documentsOf(write) }))
    const docsOf = (isOneShot: boolean) =>
      all.flatMap(({ write, docs }) => (isOneShotSession(write.sessionId) === isOneShot ? docs : []))
    const inserts = [insertMissing(this.#sessions, docsOf(false)), insertMissing(this.#oneShots, docsOf(true))]
    const skipped = new Set((await Promise.all(inserts)).flat())
    return Promise.all(
      all.map(async ({ write: { tenant, sessionId, workspace, owner }, docs }) => {
        const name = { tenant, session_id: sessionId, workspace }
        const taken = docs.filter((doc) => skipped.has(doc))
        const owners = taken.map(({ doc }) => this.ownerAt(name, Number(doc['seq'])))
        return { places: docs.length, isOwn: (await Promise.all(owners)).every((each) => each === owner) }
      }),
    )
  }

  /** The owner that has taken a place of a log. */
  async ownerAt({ tenant, session_id, workspace }: LogName, seq: number): Promise<string | undefined> {
    const found = isOneShotSession(session_id)
      ? await this.#oneShots.get(SYSTEM_TENANT, { of_tenant: tenant, workspace, seq })
      : await this.#sessions.get(tenant, { workspace, seq })
    return found && (found.doc as LogDocument).owner
  }

  /** Deletes the log of a session, or only its first places. Places that have already expired are deleted again, which does no harm. */
  async delete({ tenant, workspace }: Omit<LogName, 'session_id'>, count?: number): Promise<void> {
    const last = count ?? (await this.#lastPlace(tenant, workspace))
    await deleteAll(this.#sessions, tenant, placesTo(last, { workspace }))
  }

  async #lastPlace(tenant: TenantId, workspace: string): Promise<number> {
    const [newest] = await this.#sessions.page(tenant, { where: { workspace }, limit: 1 })
    return newest ? Number(newest.doc['seq']) : 0
  }

  /** Deletes the logs of one-shot runs. */
  async deleteEnded(logs: readonly EndedLog[]): Promise<void> {
    const keys = logs.flatMap(({ tenant: of_tenant, workspace, last }) => placesTo(last, { of_tenant, workspace }))
    await deleteAll(this.#oneShots, SYSTEM_TENANT, keys)
  }

  /** `after`: the page begins with the places before this one. */
  #page({ tenant, session_id, workspace }: LogName, after: number | undefined, limit: number): Promise<Stored[]> {
    if (isOneShotSession(session_id)) {
      const query: PageQuery = { after: [tenant, workspace, after ?? Number.MAX_SAFE_INTEGER], limit }
      return this.#oneShots.page(SYSTEM_TENANT, { ...query, until: [tenant, workspace] })
    }
    return this.#sessions.page(tenant, { where: { workspace }, ...(after !== undefined && { after: [after] }), limit })
  }
}

const insertMissing = async (log: Collection, docs: readonly OwnedDocument[]): Promise<OwnedDocument[]> =>
  docs.length === 0 ? [] : log.insertMissing(docs)

const placesTo = <N extends object>(last: number, name: N): (N & { seq: number })[] =>
  Array.from({ length: last }, (_, i) => ({ ...name, seq: last - i }))

type Keys = Parameters<Collection['deleteMany']>[1]

async function deleteAll(log: Collection, tenant: TenantId, keys: Keys): Promise<void> {
  for (let at = 0; at < keys.length; at += MAX_DELETED) await log.deleteMany(tenant, keys.slice(at, at + MAX_DELETED))
}
