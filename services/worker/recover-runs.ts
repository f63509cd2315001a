import type { BusySessions } from '../../shared/agent/sessions/busy-sessions.ts'
import type { Inbox } from '../../shared/cluster/commands/inbox.ts'
import { hasKind } from '../../shared/kernel/errors.ts'
import type { Log } from '../../shared/kernel/log.ts'

type Parts = { inbox: Pick<Inbox, 'getSession'>; owner: string; log: Log }

const PAGE = 100

/** Opens the sessions that had runs when an earlier process ended: the runs go on here (D32.8). Call it before requests come. */
export async function recoverRuns(busy: BusySessions | undefined, { inbox, owner, log }: Parts): Promise<void> {
  if (!busy) return
  for (let other = await busy.nextOwner(undefined); other !== undefined; other = await busy.nextOwner(other)) {
    if (other === owner) continue
    for (let left = await busy.of(other, PAGE); left.length > 0; left = await busy.of(other, PAGE)) {
      for (const { tenant, session_id: id } of left) {
        try {
          await inbox.getSession(tenant, id)
        } catch (cause) {
          if (!hasKind(cause, 'not_found')) log.warn('the runs of a session could not go on', { session_id: id, cause })
        }
      }
      await busy.delete(left.map(({ id }) => id))
    }
  }
}
