import type { JsonObject } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'

/** The events of `GET /events` (D16a). Webhooks use the same names. */
export const TENANT_EVENT_TYPES = [
  'permission.requested',
  'permission.resolved',
  'tool_call.requested',
  'tool_call.resolved',
  'run.started',
  'run.waiting',
  'run.ended',
  'plan.queued',
  'plan.step',
  'plan.ended',
  'flow.ended',
  'batch.ended',
  'flow.changed',
  'config.changed',
  'budget.threshold',
] as const

export type TenantEventType = (typeof TENANT_EVENT_TYPES)[number]

/** A change of one of the tenant's objects. `data` has only ids and states; the API has the rest. */
export type TenantEvent = {
  type: TenantEventType
  /** ISO 8601. */
  at: string
  data: JsonObject
}

/**
 * A place in a tenant's log: just after event `n` of a generation. The numbers of a generation begin with 1 and have no gaps. A log that
 * has lost events, or was removed, continues in a later generation.
 */
export type EventPosition = { generation: number; n: number }

/** An event of the log. `frame` is its SSE frame, rendered once for all readers. */
export type LoggedEvent = { position: EventPosition; type: TenantEventType; frame: string }

/** Takes the events of all tenants. */
export interface EventSink {
  /** Never fails and never waits. An event is logged at least once; one that cannot be logged in time shows as a gap (D16c). */
  append(tenant: TenantId, event: TenantEvent): void
}

/** Each tenant's newest events, at least `KEPT_EVENTS` of them. */
export interface EventLog extends EventSink {
  /** Opens one reader of a tenant's log. Throws `unavailable` when the log cannot be read. */
  watch(tenant: TenantId): Promise<EventWatch>
}

/** One reader's view of a tenant's log. */
export interface EventWatch {
  /** The end of the log when the watch was opened. */
  readonly end: EventPosition
  /** The events after a position, oldest first, at most a page of them; `undefined` when the next one is no longer kept. Throws `unavailable`. */
  read(after: EventPosition): Promise<readonly LoggedEvent[] | undefined>
  /** The end of the log as far as it is known here. */
  readonly newest: EventPosition
  /** Sets the listener, which is called after each addition. */
  subscribe(listener: () => void): void
  close(): void
}

/** How many events a tenant's log keeps. */
export const KEPT_EVENTS = 1_000

/** For a process whose events nobody can follow. */
export const NO_EVENTS: EventSink = { append: () => {} }
