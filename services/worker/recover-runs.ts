import type { BusySessions } from '../../shared/agent/sessions/busy-sessions.ts'
import type { Inbox } from '../../shared/cluster/commands/inbox.ts'
import { hasKind } from '../../shared/kernel/errors.ts'
import type { Log } from '../../shared/kernel/log.ts'

type Parts = { inbox: Pick<Inbox, 'getSession'>; owner: string; log: Log }

const PAGE = 100

/** Opens the sessions that had runs when an earlier process ended: the runs continue here (D32.8). Call it before requests come. */
export async function recoverRuns(busy: BusySessions | undefined, { inbox, owner, log }: Parts): Promise<void> {
  if (!busy) return
  for (let other = await busy.nextOwner(undefined); other !== undefined; other = await busy.nextOwner(other)) {
    if (other === owner) continue
    for (let left = await busy.of(other, PAGE); left.length > 0; left = await busy.of(other, PAGE)) {
      const over: string[] = []
      for (const { id, tenant, session_id } of left) {
        try {
          await inbox.getSession(tenant, session_id)
          over.push(id)
        } catch (cause) {
          if (hasKind(cause, 'not_found')) over.push(id)
          else log.warn('the runs of a session could not go on; the next start tries again', { session_id, cause })
        }
      }
      if (over.length === 0) break
      await busy.delete(over)
    }
  }
}
