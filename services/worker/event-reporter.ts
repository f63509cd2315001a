import type { Decision } from '../../shared/agent/engine/permissions.ts'
import { kindOf, type PendingPermission } from '../../shared/cluster/permissions/store.ts'
import type { RunEvent } from '../../shared/kernel/events.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { isoTime } from '../../shared/kernel/time.ts'
import type { EventSink, TenantEvent } from '../../shared/tenancy/events/port.ts'
import type { WebhookOutbox } from '../../shared/tenancy/webhooks/outbox.ts'
import type { WebhookEvent } from '../../shared/tenancy/webhooks/port.ts'
import type { Run } from '../../shared/work/runs/run.ts'
import { announceRuns } from '../../shared/work/runs/run-events.ts'
import { BackgroundWrites } from './background-writes.ts'
import type { DecisionAudit } from './decision-audit.ts'

/** Reports what happens to runs: to the tenants' event streams and their webhooks. No call fails or waits. */
export interface EventReporter {
  runStarted(run: Run): void
  runWaiting(run: Run): void
  runEnded(run: Run, last: RunEvent): void
  /** Reports a permission request, or a call that the client is to execute. */
  permissionRequested(request: PendingPermission): void
  permissionResolved(request: PendingPermission, decision: Decision): void
  /** Resolves when everything that was reported is stored. */
  settled(): Promise<void>
}

type Outbox = Pick<WebhookOutbox, 'publish' | 'mayWant'>

/** `outbox` is missing without runtime configuration, where there are no webhooks. */
export type ReporterDeps = {
  events: EventSink
  outbox: Outbox | undefined
  /** `undefined` without a store. */
  audit: DecisionAudit | undefined
  log: Log
}

export function createEventReporter({ events, outbox, audit, log }: ReporterDeps): EventReporter {
  const writes = new BackgroundWrites((why, what, cause) =>
    log.error(`an event for webhooks was lost: ${why}`, { ...what, cause }),
  )
  const runs = announceRuns(events)
  const report = (tenant: TenantId, eventOf: () => WebhookEvent, type: WebhookEvent['type']) => {
    if (!outbox?.mayWant(tenant, type)) return
    const event = eventOf()
    writes.add({ type, id: event.subject }, () => outbox.publish(tenant, event))
  }
  return {
    runStarted: runs.onStarted,
    runWaiting: runs.onWaiting,
    runEnded(run, last) {
      runs.onEnded(run, last)
      report(run.tenant, () => runEnded(run, last), 'run.ended')
    },
    permissionRequested(request) {
      const event = permissionRequested(request)
      events.append(request.tenant, { type: event.type, at: event.at, data: event.data })
      report(request.tenant, () => event, event.type)
    },
    permissionResolved(request, decision) {
      events.append(request.tenant, permissionResolved(request, decision))
      if (kindOf(request.id) === 'permission') audit?.record(request, decision)
    },
    async settled() {
      await Promise.all([writes.settled(), audit?.settled()])
    },
  }
}

function runEnded(
  { id, sessionId, status, startedAt, endedAt = new Date(), metadata }: Run,
  last: RunEvent,
): WebhookEvent {
  const [started_at, ended_at] = [isoTime(startedAt.getTime()), isoTime(endedAt.getTime())]
  const code = last.type === 'error' ? { code: last.code } : {}
  const data = {
    ...{ run_id: id, session_id: sessionId ?? null, status, ...code, started_at, ended_at },
    ...(metadata && { metadata }),
  }
  return { type: 'run.ended', subject: id, at: ended_at, data }
}

function permissionResolved(
  { id, scopeId, runId, details }: PendingPermission,
  { allow, how, by, input, answer }: Pick<Decision, 'allow' | 'how' | 'by' | 'input' | 'answer'>,
): TenantEvent {
  const at = new Date().toISOString()
  if (kindOf(id) === 'tool_call') {
    const { tool_name, tool_use_id } = details
    const call = { session_id: scopeId, run_id: runId, tool_name, tool_use_id }
    const outcome = { how, is_error: answer?.isError ?? true, ...(by !== undefined && { by }) }
    return { type: 'tool_call.resolved', at, data: { ...call, ...outcome } }
  }
  const data = {
    request_id: id,
    session_id: scopeId,
    run_id: runId,
    tool_name: details.tool_name,
    allow,
    how,
    ...(by !== undefined && { by }),
    edited: input !== undefined,
  }
  return { type: 'permission.resolved', at, data }
}

/** The tool's input is left out; `GET /permissions` shows it. */
function permissionRequested({ id, scopeId, runId, details }: PendingPermission) {
  const { tool_name, tool_use_id, created_at: at, expires_at } = details
  const data = { session_id: scopeId, run_id: runId, tool_name, tool_use_id, expires_at }
  if (kindOf(id) === 'tool_call') return { type: 'tool_call.requested', subject: id, at, data } as const
  return { type: 'permission.requested', subject: id, at, data: { request_id: id, ...data } } as const
}
