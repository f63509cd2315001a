import type { JsonObject } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { WebhookEventType } from '../tenant-config/config.ts'

/** A change of one of the tenant's objects. `data` has only ids and states; the API has the rest. */
export type WebhookEvent = {
  type: WebhookEventType
  /** The id of the run, permission request, plan or execution, or the used part of a budget. An event is sent once per type and subject. */
  subject: string
  /** ISO 8601. */
  at: string
  data: JsonObject
}

/** `pending`: to be sent, for the first time or again. `dead`: given up. */
export type DeliveryStatus = 'pending' | 'delivered' | 'dead'

/** The delivery of one event to one webhook, in the form that the tenant sees. Times are in ISO 8601. */
export type Delivery = {
  /** Sent as `webhook-id`, the same at each attempt. */
  id: string
  /** The id of the webhook; a later webhook with the same name has another id. */
  webhook: string
  type: WebhookEventType | 'webhook.test'
  status: DeliveryStatus
  attempts: number
  created_at: string
  last_attempt_at: string | null
  next_attempt_at: string | null
  /** The HTTP status of the last answer. */
  response_status: number | null
  error: string | null
  /** The JSON text that is signed and sent. */
  body: string
}

/** An entry of the outbox: a delivery that is to be attempted at `dueMs` (milliseconds since 1970). */
export type Due = { id: string; tenant: TenantId; webhook: string; dueMs: number; attempts: number; version: number }

export type DeliveryPage = { limit: number; after?: readonly [createdAt: string, id: string] | undefined }

/** The failures of a webhook's receiver that has not accepted its last message. */
export type ReceiverState = {
  /** Attempts that failed since it last accepted a message. */
  failures: number
  /** Milliseconds since 1970; in the past when it is not resting. */
  restsUntilMs: number
  /** When the webhook was last changed (ISO 8601): after another change this state is no longer valid. */
  webhookUpdatedAt: string
}

/** Stores the states of receivers. Every method throws `unavailable` when the store does not answer. */
export interface ReceiverStore {
  get(tenant: TenantId, webhook: string): Promise<ReceiverState | undefined>
  change(
    tenant: TenantId,
    webhook: string,
    change: (state: ReceiverState | undefined) => ReceiverState,
  ): Promise<ReceiverState>
  forget(tenant: TenantId, webhook: string): Promise<void>
}

/** Stores deliveries, and the outbox of those that are pending. Every method throws `unavailable` when the store does not answer. */
export interface DeliveryStore {
  readonly receivers: ReceiverStore
  /** Stores a pending delivery and puts it into the outbox. Changes nothing when one with this id exists. */
  add(tenant: TenantId, delivery: Delivery): Promise<void>
  get(tenant: TenantId, id: string): Promise<Delivery | undefined>
  /** Newest first. */
  page(
    tenant: TenantId,
    webhook: string,
    query: DeliveryPage & { status?: DeliveryStatus | undefined },
  ): Promise<Delivery[]>
  /** Changes a delivery, if it exists. */
  change(tenant: TenantId, id: string, change: (delivery: Delivery) => Delivery): Promise<Delivery | undefined>
  /** Puts a delivery into the outbox, or leaves it there, due at once and without attempts. */
  enqueue(tenant: TenantId, delivery: Pick<Delivery, 'id' | 'webhook'>): Promise<void>
  /** The entries that are due, of all tenants or of one webhook, in the order of their times. */
  due(nowMs: number, page: { limit: number; webhook?: string }): Promise<Due[]>
  /** The first webhook after `after`, in the order of their ids, that has an entry, due or not. */
  webhookAfter(after: string | undefined): Promise<string | undefined>
  /** Counts an attempt and reserves the entry until `untilMs`. `undefined` when another process was faster. */
  claim(due: Due, untilMs: number): Promise<Due | undefined>
  /** Moves a claimed entry to a later time. */
  postpone(due: Due, dueMs: number): Promise<void>
  /** Removes an entry. */
  remove(due: Pick<Due, 'id'>): Promise<void>
}
