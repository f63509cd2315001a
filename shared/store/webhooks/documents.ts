import type { CollectionSpec } from '../port.ts'

/** The pending deliveries of all tenants in the order in which they are due; kept under the system tenant. */
export const WEBHOOK_OUTBOX: CollectionSpec = {
  name: 'webhook_outbox',
  key: ['id'],
  order: { within: [], by: ['due_ms', 'id'], direction: 'ascending' },
}

/** Every delivery of a tenant, until it is old. */
export const WEBHOOK_DELIVERIES: CollectionSpec = {
  name: 'webhook_deliveries',
  key: ['id'],
  order: { within: ['webhook'], by: ['created_at', 'id'], direction: 'descending' },
  filters: ['status'],
  ttlSecs: 30 * 24 * 3_600,
}
