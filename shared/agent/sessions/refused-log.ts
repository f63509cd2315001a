import type { SessionLogs } from './log.ts'
import { type LogEntry, type LogWrite, NO_FACTS } from './log-documents.ts'

type Log = Pick<SessionLogs, 'append' | 'ownerAt' | 'delete'>
type RefusedLog = Pick<LogWrite, 'tenant' | 'sessionId' | 'workspace'>

/** The last entry of the log of a refused creation. It must be kept as long as a head that the store may still write later. */
export function refusalOf(
  log: RefusedLog,
  creator: string,
  { nowMs, expiresMs }: { nowMs: number; expiresMs: number },
) {
  const entry: LogEntry = { at: new Date(nowMs).toISOString(), facts: NO_FACTS, messages: [], isRefused: true }
  return { ...log, owner: `${creator} refused`, entry, expiresMs }
}

/**
 * Takes the place after the creator's entries, so that a process that opens the session finds it taken, and deletes the entries before it. Returns
 * `false` when another owner was faster.
 */
export async function markRefused(logs: Log, mark: Omit<LogWrite, 'seq'>, creator: string): Promise<boolean> {
  const name = { tenant: mark.tenant, session_id: mark.sessionId, workspace: mark.workspace }
  for (let seq = 1; ; seq++) {
    await logs.append([{ ...mark, seq }])
    const owner = await logs.ownerAt(name, seq)
    if (owner === creator) continue
    if (owner === mark.owner) await logs.delete(name, seq - 1)
    return owner === mark.owner
  }
}
