import type { SessionLogs } from './log.ts'
import { type LogEntry, type LogWrite, NO_FACTS } from './log-documents.ts'

type Log = Pick<SessionLogs, 'append' | 'ownerAt' | 'delete'>
type RefusedLog = Pick<LogWrite, 'tenant' | 'sessionId' | 'workspace'>

/** The last entry of the log of a refused creation. It has to be stored for as long as a head that the store carries out later. */
export function refusalOf(
  log: RefusedLog,
  creator: string,
  { nowMs, expiresMs }: { nowMs: number; expiresMs: number },
) {
  const entry: LogEntry = { at: new Date(nowMs).toISOString(), facts: NO_FACTS, messages: [], isRefused: true }
  return { ...log, owner: `${creator} refused`, entry, expiresMs }
}

/**
 * Takes the next place behind what the creator has written, so that whoever opens the session finds it taken, and deletes what is before it. Returns
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
