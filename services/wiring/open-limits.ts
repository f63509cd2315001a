import { LRUCache } from 'lru-cache'
import type { PriceOf } from '../../shared/agent/providers/port.ts'
import { createPrices } from '../../shared/agent/providers/prices.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { EventSink } from '../../shared/tenancy/events/port.ts'
import { type Admission, RunAdmission } from '../../shared/tenancy/limits/admission.ts'
import { assertBudget, Budgets, type BudgetsDeps } from '../../shared/tenancy/limits/budgets.ts'
import { openCeilingFile } from '../../shared/tenancy/limits/ceiling-file.ts'
import { NO_CEILINGS } from '../../shared/tenancy/limits/ceilings.ts'
import { KnownLimits } from '../../shared/tenancy/limits/known-limits.ts'
import { LimitSettings } from '../../shared/tenancy/limits/limit-settings.ts'
import { createMeter, type Meter } from '../../shared/tenancy/limits/meter.ts'
import { endOf, type Threshold } from '../../shared/tenancy/limits/periods.ts'
import type { BudgetHolds, RunPlaces } from '../../shared/tenancy/limits/port.ts'
import { Reservations } from '../../shared/tenancy/limits/reservations.ts'
import { TenantRequests } from '../../shared/tenancy/limits/tenant-requests.ts'
import type { RateLimiter } from '../../shared/tenancy/rate/port.ts'
import { ModelGate } from '../../shared/tenancy/room/gate.ts'
import type { Rooms } from '../../shared/tenancy/room/port.ts'
import { instanceScope, roomOf } from '../../shared/tenancy/room/rooms.ts'
import { weightOfCustomer } from '../../shared/tenancy/tenant-config/config.ts'
import type { InspectorDeps } from '../../shared/tenancy/tenant-config/inspector.ts'
import type { LiveConfigs } from '../../shared/tenancy/tenant-config/live-configs.ts'
import type { WebhookOutbox } from '../../shared/tenancy/webhooks/outbox.ts'
import type { OpenedStore } from './open-store.ts'

/** The limits of tenants as a process enforces them. */
export type OpenedLimits = {
  known: KnownLimits
  requests: TenantRequests
  admission: Admission
  meter: Meter
  budgets: Pick<Budgets, 'standings' | 'exhausted'>
  priceOf: PriceOf
  roomOf: InspectorDeps['roomOf']
  /** Throws `rate_limit` or `unavailable` when the tenant's budget allows no model call. */
  assertBudget(tenant: TenantId): Promise<void>
  settings: LimitSettings
  close(): Promise<void>
}

type Parts = {
  configs: LiveConfigs
  store: Pick<OpenedStore, 'spending'>
  places: RunPlaces
  holds: BudgetHolds
  rooms: Rooms
  thresholds: { events: EventSink; outbox: Pick<WebhookOutbox, 'publish'> }
  limiter: RateLimiter
  metrics: Metrics
  log: Log
}

/** Throws `ConfigError` when the file of the operator's ceilings cannot be used. */
export async function openLimits(
  { modelPrices, serverModels, tenantLimits }: Settings['tenants']['limits'],
  { configs, store, places, holds, rooms, thresholds, limiter, metrics, log }: Parts,
): Promise<OpenedLimits> {
  const ceilings = tenantLimits === undefined ? undefined : await openCeilingFile({ file: tenantLimits, log })
  const known = new KnownLimits(configs, ceilings)
  const budgets = new Budgets({ limits: known, store: store.spending, thresholds: announcing(thresholds), log })
  const reservations = new Reservations({ budgets, holds, log })
  const weightOf = (tenant: TenantId, customer?: string) =>
    customer === undefined ? (ceilings?.weightOf(tenant) ?? 1) : weightOfCustomer(known.peek(tenant), customer)
  const gate = new ModelGate({ rooms, weightOf, metrics, log })
  const priceOf = createPrices(modelPrices)
  const admission = new RunAdmission({ limits: known, budgets, places, metrics, log })
  return {
    known,
    requests: new TenantRequests(known, limiter),
    admission,
    roomOf: (tenant, instance) => roomOf(rooms, instanceScope(tenant, instance)),
    meter: createMeter({
      ...{ reservations, gate, priceOf, onUnpriced: createUnpricedLog(log) },
      onAbandoned: () => metrics.count('calls_abandoned'),
    }),
    ...{ budgets, priceOf },
    assertBudget: (tenant) => assertBudget(budgets, tenant),
    settings: new LimitSettings({ configs, budgets, places, ceilings: ceilings ?? NO_CEILINGS, priceOf, serverModels }),
    async close() {
      ceilings?.close()
      admission.close()
      reservations.close()
      gate.close()
      await budgets.close()
    },
  }
}

/** What estimates of starts need, with and without runtime configuration (D57). */
export const estimatesOf = (
  { modelPrices, serverModels }: Settings['tenants']['limits'],
  tenantConfig: { configs: LiveConfigs; limits: Pick<OpenedLimits, 'budgets'> } | undefined,
) => ({
  ...{ priceOf: createPrices(modelPrices), serverModels },
  ...{ configs: tenantConfig?.configs, budgets: tenantConfig?.limits.budgets },
})

/** Turns a reached budget threshold into an event of the tenant, for its event streams and its webhooks (D53.1). */
function announcing({ events, outbox }: Parts['thresholds']): BudgetsDeps['thresholds'] {
  const eventOf = ({ payer: { customer }, period, name, budget, percent }: Threshold) => ({
    type: 'budget.threshold' as const,
    subject: `${period} ${name}`,
    at: new Date().toISOString(),
    data: {
      ...{ budget, percent, resets_at: endOf(period).toISOString() },
      ...(customer !== undefined && { customer_id: customer }),
    },
  })
  return {
    publish: (reached) => outbox.publish(reached.payer.tenant, eventOf(reached)),
    append(reached) {
      const { type, at, data } = eventOf(reached)
      events.append(reached.payer.tenant, { type, at, data })
    },
  }
}

/** How many models without a price are remembered as logged. Limited, because runs may name any model. */
const MAX_UNPRICED = 1_000

/** Logs a model without a price once for each tenant: its runs carry the warning each time (D4.10). */
function createUnpricedLog(log: Log): (tenant: TenantId, model: string) => void {
  const known = new LRUCache<string, true>({ max: MAX_UNPRICED })
  return (tenant, model) => {
    const key = JSON.stringify([tenant, model])
    if (known.get(key)) return
    known.set(key, true)
    log.warn(
      'the price of a model is not known, so no budget in dollars counts it: set MODEL_PRICES, or prices of the instance',
      { tenant, model },
    )
  }
}
