import type { JsonObject } from '../../../kernel/events.ts'
import { SYSTEM_TENANT, type TenantId } from '../../../kernel/tenant.ts'
import type { Collection, CollectionSpec, Store, Stored } from '../../../platform/store/port.ts'
import { OVERTAKEN, untilFirst } from '../../../platform/store/replace.ts'
import type { Delivery, DeliveryStore, Due } from '../port.ts'
import { createReceiverStore, WEBHOOK_RECEIVERS } from './receivers.ts'

/** The pending deliveries of all tenants in the order in which they are due; kept under the system tenant. */
export const WEBHOOK_OUTBOX: CollectionSpec = {
  name: 'webhook_outbox',
  key: ['id'],
  order: { within: [], by: ['due_ms', 'id'], direction: 'ascending' },
  filters: ['webhook'],
}

/** Every delivery of a tenant, until it is old. */
export const WEBHOOK_DELIVERIES: CollectionSpec = {
  name: 'webhook_deliveries',
  key: ['id'],
  order: { within: ['webhook'], by: ['created_at', 'id'], direction: 'descending' },
  filters: ['status'],
  ttlSecs: 30 * 24 * 3_600,
}

type OutboxDoc = { id: string; owner: TenantId; webhook: string; due_ms: number; attempts: number }

export function createDeliveryStore(store: Store, now: () => number = Date.now): DeliveryStore {
  const deliveries = store.collection(WEBHOOK_DELIVERIES)
  const outbox = store.collection(WEBHOOK_OUTBOX)
  const enqueue: DeliveryStore['enqueue'] = async (owner, { id, webhook }) => {
    const entry: OutboxDoc = { id, owner, webhook, due_ms: now(), attempts: 0 }
    await outbox.insert(SYSTEM_TENANT, entry)
  }
  const get: DeliveryStore['get'] = async (tenant, id) =>
    (await deliveries.get(tenant, { id }))?.doc as Delivery | undefined
  return {
    async add(tenant, delivery) {
      const isNew = await deliveries.insert(tenant, delivery)
      const stored = isNew ? delivery : await get(tenant, delivery.id)
      // An earlier call may have failed between its two writes, so the entry may be missing.
      if (stored?.status === 'pending') await enqueue(tenant, stored)
    },
    get,
    async page(tenant, webhook, { status, after, limit }) {
      const where = { webhook, ...(status !== undefined && { status }) }
      const page = await deliveries.page(tenant, { where, after, limit })
      return page.map(({ doc }) => doc as Delivery)
    },
    change: (tenant, id, change) => changeDelivery(deliveries, tenant, { id, change }),
    enqueue,
    ...createOutbox(outbox),
    receivers: createReceiverStore(store.collection(WEBHOOK_RECEIVERS), now),
  }
}

/** The entries of pending deliveries. Each change is a compare-and-set, so that one process attempts a delivery at a time. */
function createOutbox(
  outbox: Collection,
): Pick<DeliveryStore, 'due' | 'webhookAfter' | 'claim' | 'postpone' | 'remove'> {
  const replace = ({ version, ...due }: Due) => {
    const { id, tenant: owner, webhook, dueMs: due_ms, attempts } = due
    const doc: OutboxDoc = { id, owner, webhook, due_ms, attempts }
    return outbox.replaceIfVersion(SYSTEM_TENANT, { doc, version })
  }
  return {
    async due(nowMs, { limit, webhook }) {
      const where = webhook === undefined ? {} : { webhook }
      return (await outbox.page(SYSTEM_TENANT, { where, until: [nowMs], limit })).map(toDue)
    },
    webhookAfter: (after) => outbox.nextValue(SYSTEM_TENANT, 'webhook', after),
    async claim(due, untilMs) {
      const claimed = { ...due, dueMs: untilMs, attempts: due.attempts + 1 }
      return (await replace(claimed)) ? { ...claimed, version: due.version + 1 } : undefined
    },
    async postpone(due, dueMs) {
      await replace({ ...due, dueMs })
    },
    async remove({ id }) {
      await outbox.delete(SYSTEM_TENANT, { id })
    },
  }
}

function toDue({ doc, version }: Stored): Due {
  const { id, owner: tenant, webhook, due_ms: dueMs, attempts } = doc as OutboxDoc
  return { id, tenant, webhook, dueMs, attempts, version }
}

type Change = { id: string; change: (delivery: Delivery) => Delivery }

const changeDelivery = (
  deliveries: Collection,
  tenant: TenantId,
  { id, change }: Change,
): Promise<Delivery | undefined> =>
  untilFirst(async () => {
    const found = await deliveries.get(tenant, { id })
    if (!found) return undefined
    const delivery = change(found.doc as Delivery)
    const doc: JsonObject = { ...delivery }
    return (await deliveries.replaceIfVersion(tenant, { doc, version: found.version })) ? delivery : OVERTAKEN
  })
