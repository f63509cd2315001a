import type { JsonObject, RunEvent } from '../../kernel/events.ts'
import { isoTime } from '../../kernel/time.ts'
import type { EventSink } from '../../tenancy/events/port.ts'
import type { Run, RunHooks } from './run.ts'

/** Sends an event to the tenant's readers when a run begins, waits for a permission, and ends (D16a). */
export function announceRuns(events: EventSink): Required<Pick<RunHooks, 'onStarted' | 'onWaiting' | 'onEnded'>> {
  return {
    onStarted: (run) => events.append(run.tenant, { type: 'run.started', at: isoTime(), data: dataOf(run) }),
    onWaiting: (run) => events.append(run.tenant, { type: 'run.waiting', at: isoTime(), data: dataOf(run) }),
    onEnded(run, last) {
      const at = isoTime(run.endedAt?.getTime())
      events.append(run.tenant, { type: 'run.ended', at, data: endOf(run, { last, at }) })
    },
  }
}

const dataOf = ({ id, sessionId, kind, status, startedAt, metadata }: Run): JsonObject => ({
  run_id: id,
  session_id: sessionId ?? null,
  kind,
  status,
  started_at: isoTime(startedAt.getTime()),
  ...(metadata && { metadata }),
})

const endOf = (run: Run, { last, at }: { last: RunEvent; at: string }): JsonObject => ({
  ...dataOf(run),
  ...(last.type === 'error' && { code: last.code }),
  ended_at: at,
})
