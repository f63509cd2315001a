import { DISPATCH_ANSWERS, DISPATCH_INPUTS, DISPATCH_OUTPUTS, DISPATCHES } from './dispatch-documents.ts'
import { FLOW_MEMORY } from './flow-memory.ts'
import { FLOW_REVISIONS, FLOWS } from './flows.ts'
import { IDEMPOTENCY } from './idempotency.ts'
import { INSTANCE_CAPABILITIES } from './instance-capabilities.ts'
import { JOBS } from './jobs.ts'
import { LEDGER } from './ledger.ts'
import { MEMORY_ENTRIES } from './memory-entries.ts'
import { PLAN_SCHEDULES, SCHEDULING_TENANTS } from './plan-schedules.ts'
import { ACTIVE_PLANS, PLAN_OUTPUTS, PLAN_STEPS, PLANS } from './plans/documents.ts'
import { PLAN_SCHEDULE_TICKS } from './plans/tick-records.ts'
import type { CollectionSpec } from './port.ts'
import { SPENDING } from './spending/spending.ts'
import { CONFIG_CHANGES, CONFIGURED_TENANTS, TENANT_CONFIGS } from './tenant-configs.ts'
import { WEBHOOK_DELIVERIES, WEBHOOK_OUTBOX, WEBHOOK_RECEIVERS } from './webhooks/documents.ts'

/** Every collection of the product; both stores are opened with them. */
export const COLLECTIONS: readonly CollectionSpec[] = [
  LEDGER,
  MEMORY_ENTRIES,
  TENANT_CONFIGS,
  CONFIGURED_TENANTS,
  CONFIG_CHANGES,
  INSTANCE_CAPABILITIES,
  FLOWS,
  FLOW_REVISIONS,
  FLOW_MEMORY,
  DISPATCHES,
  DISPATCH_INPUTS,
  DISPATCH_OUTPUTS,
  DISPATCH_ANSWERS,
  IDEMPOTENCY,
  JOBS,
  PLANS,
  PLAN_STEPS,
  PLAN_OUTPUTS,
  ACTIVE_PLANS,
  PLAN_SCHEDULES,
  SCHEDULING_TENANTS,
  PLAN_SCHEDULE_TICKS,
  SPENDING,
  WEBHOOK_OUTBOX,
  WEBHOOK_RECEIVERS,
  WEBHOOK_DELIVERIES,
]
