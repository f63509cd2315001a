import type { TenantId } from '../../kernel/tenant.ts'
import type { Collection } from '../../platform/store/port.ts'
import {
  documentsOf,
  EntryReader,
  type LogDocument,
  type LogEntry,
  type LogWrite,
  type PlacedEntry,
} from './log-documents.ts'

const PAGE = 50
const MAX_DELETED = 500

/** The outcome of a write: how many places it takes, and whether they are its own. */
export type Appended = { places: number; isOwn: boolean }

/** The newest entry of a log. */
export async function lastEntry(log: Collection, tenant: TenantId, workspace: string): Promise<LogEntry | undefined> {
  for await (const entry of entriesOf(log, tenant, { workspace, batch: 1 })) return entry
  return undefined
}

type Reading = { workspace: string; batch?: number; onNewest?: (seq: number) => void }

/** The entries of a log, the newest first. `onNewest` is called with the place of the newest document, unless there is none. */
export async function* entriesOf(
  log: Collection,
  tenant: TenantId,
  { workspace, batch = PAGE, onNewest }: Reading,
): AsyncGenerator<PlacedEntry> {
  const reader = new EntryReader()
  let after: [number] | undefined
  for (let limit = batch; ; limit = PAGE) {
    const found = await log.page(tenant, { where: { workspace }, after, limit })
    for (const { doc } of found) {
      const read = doc as LogDocument
      if (!after) onNewest?.(read.seq)
      after = [read.seq]
      const entry = reader.read(read)
      if (entry) yield { ...entry, seq: read.seq }
    }
    if (found.length < limit) return
  }
}

/** The first place of a log that is free. */
async function nextSeqOf(log: Collection, tenant: TenantId, workspace: string): Promise<number> {
  const [newest] = await log.page(tenant, { where: { workspace }, limit: 1 })
  return newest ? Number(newest.doc['seq']) + 1 : 1
}

/** Adds entries with one command. One that is there already, since the answer of an earlier try did not come, is its owner's own. */
export async function append(log: Collection, writes: readonly LogWrite[]): Promise<Appended[]> {
  const all = writes.map((write) => ({ write, docs: documentsOf(write) }))
  const skipped = new Set(await log.insertMissing(all.flatMap(({ docs }) => docs)))
  return Promise.all(
    all.map(async ({ write: { tenant, workspace, owner }, docs }) => {
      const taken = docs.filter((doc) => skipped.has(doc))
      const owners = taken.map(({ doc }) => ownerAt(log, tenant, { workspace, seq: Number(doc['seq']) }))
      return { places: docs.length, isOwn: (await Promise.all(owners)).every((each) => each === owner) }
    }),
  )
}

/** The owner that has taken a place of a log. */
export async function ownerAt(
  log: Collection,
  tenant: TenantId,
  place: { workspace: string; seq: number },
): Promise<string | undefined> {
  const found = await log.get(tenant, place)
  return found && (found.doc as LogDocument).owner
}

/** A log, and its last place that is taken. */
export type EndedLog = { tenant: TenantId; workspace: string; last: number }

export async function deleteLog(log: Collection, tenant: TenantId, workspace: string): Promise<void> {
  await deleteLogs(log, [{ tenant, workspace, last: (await nextSeqOf(log, tenant, workspace)) - 1 }])
}

/** The places have no gap: those that have expired are deleted in vain. */
export async function deleteLogs(log: Collection, logs: readonly EndedLog[]): Promise<void> {
  for (const [tenant, own] of Map.groupBy(logs, (each) => each.tenant)) {
    const keys = own.flatMap(({ workspace, last }) =>
      Array.from({ length: last }, (_, i) => ({ workspace, seq: last - i })),
    )
    for (let at = 0; at < keys.length; at += MAX_DELETED) await log.deleteMany(tenant, keys.slice(at, at + MAX_DELETED))
  }
}
