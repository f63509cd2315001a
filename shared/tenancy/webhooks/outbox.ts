import { createHash } from 'node:crypto'
import { startOfPage, toPage } from '../../kernel/cursor.ts'
import { conflict, notFound } from '../../kernel/errors.ts'
import { newId, runIdOf } from '../../kernel/ids.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { StoredWebhook, WebhookEventType } from '../tenant-config/config.ts'
import type { LiveConfigs } from '../tenant-config/live-configs.ts'
import type { Delivery, DeliveryStatus, DeliveryStore, WebhookEvent } from './port.ts'
import { restEnd } from './receivers.ts'
import { findWebhook, type WebhookView } from './settings.ts'

export type OutboxDeps = {
  configs: Pick<LiveConfigs, 'peek' | 'get' | 'stored'>
  store: DeliveryStore
  /** CONSOLE_URL: if set, messages contain the address of a page about their event. */
  consoleUrl: string | undefined
  now?: () => Date
}

/** A delivery as the API shows it. */
export type DeliveryView = Omit<Delivery, 'webhook' | 'body'> & { payload: unknown }

/** `resting_until`: ISO 8601; null while the receiver is not resting. */
export type WebhookStatus = WebhookView & { resting_until: string | null }

export type DeliveryQuery = { status: DeliveryStatus | undefined; limit: number; cursor?: string }

/** Stores events for the webhooks that subscribe to them, and shows and repeats their deliveries. */
export class WebhookOutbox {
  readonly #configs: Pick<LiveConfigs, 'peek' | 'get' | 'stored'>
  readonly #store: DeliveryStore
  readonly #consoleUrl: string | undefined
  readonly #now: () => Date

  constructor({ configs, store, consoleUrl, now = () => new Date() }: OutboxDeps) {
    this.#configs = configs
    this.#store = store
    this.#consoleUrl = consoleUrl
    this.#now = now
  }

  /**
   * Stores one delivery for each of the tenant's webhooks that subscribes to the event; none for an event that was stored before. Throws
   * `unavailable` when the store does not answer.
   */
  async publish(tenant: TenantId, event: WebhookEvent): Promise<void> {
    const { webhooks } = await this.#configs.get(tenant)
    const wanting = webhooks.filter(({ enabled, events }) => enabled && events.includes(event.type))
    if (wanting.length === 0) return
    const page = this.#consoleUrl !== undefined && { url: consolePage(this.#consoleUrl, event) }
    const message = { ...event, data: { ...event.data, ...page } }
    await Promise.all(wanting.map((webhook) => this.#store.add(tenant, this.#deliveryOf(tenant, webhook, message))))
  }

  /** Whether a webhook of the tenant may subscribe to such events. Most tenants have none, which is known if their configuration is in memory. */
  mayWant(tenant: TenantId, type: WebhookEvent['type']): boolean {
    const { webhooks } = this.#configs.peek(tenant) ?? {}
    return webhooks?.some(({ enabled, events }) => enabled && events.includes(type)) ?? true
  }

  /** Queues a message of type `webhook.test`, also for a webhook that is disabled or rests. Throws `not_found`. */
  async test(tenant: TenantId, name: string): Promise<DeliveryView> {
    const webhook = findWebhook(await this.#configs.stored(tenant), name)
    const event = { type: 'webhook.test', at: this.#now().toISOString(), data: { webhook: name } } as const
    const delivery = this.#deliveryOf(tenant, webhook, { ...event, subject: newId('hook') })
    await this.#store.add(tenant, delivery)
    await this.#store.receivers.forget(tenant, webhook.id)
    return viewOf(delivery)
  }

  /** A webhook as the API shows it, with the end of its receiver's rest. */
  async withRest(tenant: TenantId, view: WebhookView): Promise<WebhookStatus> {
    const webhook = findWebhook(await this.#configs.stored(tenant), view.name)
    const endMs = restEnd(await this.#store.receivers.get(tenant, webhook.id), webhook, this.#now().getTime())
    return { ...view, resting_until: endMs === undefined ? null : new Date(endMs).toISOString() }
  }

  /** Newest first. Throws `not_found`, and `invalid_request` for an invalid cursor. */
  async list(
    tenant: TenantId,
    name: string,
    { status, limit, cursor }: DeliveryQuery,
  ): Promise<{ deliveries: DeliveryView[]; next_cursor: string | null }> {
    const { id } = findWebhook(await this.#configs.stored(tenant), name)
    const after = startOfPage(cursor, ['string', 'string'])
    const found = await this.#store.page(tenant, id, { status, limit: limit + 1, after })
    const { page, next_cursor } = toPage(found, limit, (last) => [last.created_at, last.id])
    return { deliveries: page.map(viewOf), next_cursor }
  }

  /** Sends an ended delivery once more, also to a resting receiver. Throws `not_found`, and `conflict` while it is pending. */
  async retry(tenant: TenantId, name: string, deliveryId: string): Promise<DeliveryView> {
    const { id: webhook } = findWebhook(await this.#configs.stored(tenant), name)
    const delivery = await this.#store.get(tenant, deliveryId)
    if (delivery?.webhook !== webhook) throw noDelivery(deliveryId)
    if (delivery.status === 'pending') {
      await this.#store.enqueue(tenant, delivery) // Repeated, because an earlier call may have failed before this step.
      throw stillPending(delivery)
    }
    const next_attempt_at = this.#now().toISOString()
    const changed = await this.#store.change(tenant, deliveryId, (stored) => {
      if (stored.status === 'pending') throw stillPending(stored)
      return { ...stored, status: 'pending', next_attempt_at, error: null }
    })
    if (!changed) throw noDelivery(deliveryId)
    await this.#store.enqueue(tenant, changed)
    await this.#store.receivers.forget(tenant, webhook)
    return viewOf(changed)
  }

  #deliveryOf(
    tenant: TenantId,
    { id: webhook }: StoredWebhook,
    event: Omit<WebhookEvent, 'type'> & { type: Delivery['type'] },
  ): Delivery {
    const { type, subject, at: timestamp, data } = event
    const at = this.#now().toISOString()
    return {
      id: messageId([tenant, webhook, type, subject]),
      webhook,
      type,
      status: 'pending',
      attempts: 0,
      created_at: at,
      last_attempt_at: null,
      next_attempt_at: at,
      response_status: null,
      error: null,
      body: JSON.stringify({ type, timestamp, data }),
    }
  }
}

/** The same event for the same webhook has the same id, whichever process stores it and however often. */
const messageId = (parts: readonly string[]): string =>
  `msg_${createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)}`

function viewOf({ webhook: _webhook, body, ...delivery }: Delivery): DeliveryView {
  return { ...delivery, payload: JSON.parse(body) as unknown }
}

const noDelivery = (id: string) => notFound(`this webhook has no delivery ${id}: it never existed, or is too old`)

const stillPending = ({ id, next_attempt_at }: Delivery) =>
  conflict(`delivery ${id} is not over: it is attempted at ${next_attempt_at ?? 'any moment'}`)

const PATHS: Record<WebhookEventType, (subject: string) => string> = {
  'run.ended': (runId) => `activity/${runId}`,
  'permission.requested': (requestId) => `approvals/${requestId}`,
  'tool_call.requested': () => 'approvals',
  'plan.ended': (planId) => `plans/${planId}`,
  'budget.threshold': () => 'settings',
  'batch.ended': () => 'flows',
  'flow.ended': (traceId) => `activity/${runIdOf(traceId)}`,
}

/** The address of the console page about an event's subject. */
const consolePage = (consoleUrl: string, { type, subject }: Pick<WebhookEvent, 'type' | 'subject'>): string =>
  `${consoleUrl}/${PATHS[type](encodeURIComponent(subject))}`
