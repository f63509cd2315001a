import type { RunEvent } from '../../../../shared/client/api.ts'
import { learn, settle } from '../../api/pending.ts'
import { serverNow } from '../../base/clock.ts'

/** Takes the requests of a run from its stream, which is faster than the list of all requests. `sessionId` is that of their replies. */
export function learnAsks({ event, data }: RunEvent, runId: string | undefined, sessionId: string): void {
  if (event === 'permission_resolved') settle(data.id)
  if (event !== 'permission_request' || runId === undefined) return
  learn({ ...data, session_id: sessionId, run_id: runId, created_at: new Date(serverNow()).toISOString() })
}
