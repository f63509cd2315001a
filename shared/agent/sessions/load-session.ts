import type { TenantId } from '../../kernel/tenant.ts'
import type { Message } from '../providers/port.ts'
import type { ClientTool } from '../tools/client-tools.ts'
import type { SessionLogs } from './log.ts'
import { NO_FACTS, type PlacedEntry, type SessionFacts } from './log-documents.ts'
import { type StoredRuns, storedRuns } from './open-runs.ts'

/** A stored session. `workspace` identifies it, and names the folder of its tools: another session with the same id has another one. */
export type SessionHead = { session_id: string; workspace: string; created_at: string }

/** `renewed_ms`: when it was written last, in milliseconds since 1970. */
export type RenewedHead = SessionHead & { renewed_ms: number }

/** A session as its log describes it. */
export type LoadedSession = {
  head: SessionHead
  messages: readonly Message[]
  memories: readonly string[]
  clientTools: readonly ClientTool[]
  facts: SessionFacts
  runs: StoredRuns
  /** The first free place of the log. */
  nextSeq: number
  /** The place of the oldest entry that is still valid. */
  baseSeq: number
  /** When that entry and the head were written, in milliseconds since 1970. */
  baseMs: number
  headMs: number
}

type Reading = { head: RenewedHead; recentMs: number }

/** Reads back to the last entry that has the whole history, and to the beginning of each run that has ended since `recentMs`. */
export async function readSession(
  logs: SessionLogs,
  tenant: TenantId,
  { head, recentMs }: Reading,
): Promise<(LoadedSession & { usedAt: string }) | undefined> {
  let newest = 0 // An entry that is added meanwhile has a later place.
  const onNewest = (seq: number) => {
    newest = seq
  }
  const read: PlacedEntry[] = []
  let base: PlacedEntry | undefined
  const begunEarlier = new Set<string>()
  for await (const entry of logs.entries({ tenant, ...head }, { onNewest })) {
    read.push(entry)
    if (entry.isBase) base ??= entry
    const isRecent = Date.parse(entry.at) >= recentMs
    if (isRecent) for (const runId of entry.runs?.ended ?? []) begunEarlier.add(runId)
    for (const { run_id } of entry.runs?.accepted ?? []) begunEarlier.delete(run_id)
    if (!base) continue
    if (entry.seq <= (base.runs?.ended_from ?? base.seq) || (!isRecent && begunEarlier.size === 0)) break
  }
  if (read[0]?.isRefused) return undefined
  const all = read.toReversed()
  const entries = base ? all.slice(all.indexOf(base)) : all
  const [oldest, last] = [entries[0], entries.at(-1)]
  const { open, ended } = storedRuns(all)
  const { session_id, workspace, created_at, renewed_ms } = head
  return {
    head: { session_id, workspace, created_at },
    messages: entries.flatMap(({ messages }) => messages),
    ...lastOf(entries),
    facts: last?.facts ?? NO_FACTS,
    runs: { open, ended: ended.filter(({ endedAt }) => Date.parse(endedAt) >= recentMs) },
    nextSeq: newest + 1,
    baseSeq: oldest?.seq ?? newest + 1,
    baseMs: oldest ? Date.parse(oldest.at) : renewed_ms,
    headMs: renewed_ms,
    usedAt: last?.at ?? created_at,
  }
}

/** The newest values of the fields that an entry has only when they have changed. */
const lastOf = (entries: readonly PlacedEntry[]) => ({
  memories: entries.findLast(({ memories }) => memories !== undefined)?.memories ?? [],
  clientTools: entries.findLast(({ client_tools: tools }) => tools !== undefined)?.client_tools ?? [],
})
