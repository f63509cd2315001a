import type { CollectionSpec } from '../../../platform/store/port.ts'

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

/** The failures of a tenant's receivers, each until it accepts a message again or nothing was sent to it for a month. */
export const WEBHOOK_RECEIVERS: CollectionSpec = {
  name: 'webhook_receivers',
  key: ['webhook'],
  expiresBy: 'expires_ms',
}
