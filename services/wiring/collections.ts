import { LEDGER } from '../../shared/agent/customers/store/ledger.ts'
import { MEMORY_ENTRIES } from '../../shared/agent/customers/store/memory-entries.ts'
import { FILE_CONTENTS, FILE_DUES, FILES } from '../../shared/agent/files/records.ts'
import { OPEN_POOLS } from '../../shared/agent/providers/batch/pool/open-pools.ts'
import {
  BATCH_ANSWERS,
  BATCH_WAVES,
  POOL_BATCHES,
  POOL_PARCELS,
} from '../../shared/agent/providers/batch/pool/store.ts'
import { BUSY_SESSIONS } from '../../shared/agent/sessions/busy-sessions.ts'
import { ONE_SHOT_LOG, SESSION_LOG } from '../../shared/agent/sessions/log-documents.ts'
import { SESSIONS } from '../../shared/agent/sessions/store.ts'
import { DECIDED_PERMISSIONS } from '../../shared/cluster/permissions/decided.ts'
import { IDEMPOTENCY } from '../../shared/platform/store/idempotency.ts'
import type { CollectionSpec } from '../../shared/platform/store/port.ts'
import { SPENDING } from '../../shared/tenancy/limits/store/spending.ts'
import { CONFIG_AUDIT } from '../../shared/tenancy/tenant-config/store/config-audit.ts'
import { INSTANCE_CAPABILITIES } from '../../shared/tenancy/tenant-config/store/instance-capabilities.ts'
import {
  CONFIG_CHANGES,
  CONFIGURED_TENANTS,
  TENANT_CONFIGS,
} from '../../shared/tenancy/tenant-config/store/tenant-configs.ts'
import { USAGE, USAGE_TENANTS } from '../../shared/tenancy/usage/store/usage.ts'
import { WEBHOOK_DELIVERIES, WEBHOOK_OUTBOX } from '../../shared/tenancy/webhooks/store/deliveries.ts'
import { WEBHOOK_RECEIVERS } from '../../shared/tenancy/webhooks/store/receivers.ts'
import { BATCH_CHUNKS, BATCHES, OPEN_BATCHES } from '../../shared/work/flows/batch/store.ts'
import { FLOW_EVALUATIONS } from '../../shared/work/flows/evaluate/evaluation-store.ts'
import {
  DISPATCH_ANSWERS,
  DISPATCH_INPUTS,
  DISPATCH_OUTPUTS,
  DISPATCHES,
} from '../../shared/work/flows/store/dispatch-documents.ts'
import { FLOW_MEMORY } from '../../shared/work/flows/store/flow-memory.ts'
import { FLOW_REVISIONS, FLOWS } from '../../shared/work/flows/store/flows.ts'
import { ACTIVE_PLANS, PLAN_OUTPUTS, PLAN_STEPS, PLANS } from '../../shared/work/plans/store/documents.ts'
import { PLAN_SCHEDULES, SCHEDULING_TENANTS } from '../../shared/work/plans/store/plan-schedules.ts'
import { PLAN_SCHEDULE_TICKS } from '../../shared/work/plans/store/tick-records.ts'
import { JOBS } from '../../shared/work/queue/store/jobs.ts'
import { OPEN_RUNS, RUN_EVENTS, RUN_RECORDS } from '../../shared/work/runs/records/store.ts'

/** Every collection of the product; both stores are opened with them. */
export const COLLECTIONS: readonly CollectionSpec[] = [
  LEDGER,
  MEMORY_ENTRIES,
  SESSIONS,
  SESSION_LOG,
  ONE_SHOT_LOG,
  BUSY_SESSIONS,
  DECIDED_PERMISSIONS,
  TENANT_CONFIGS,
  CONFIGURED_TENANTS,
  CONFIG_CHANGES,
  CONFIG_AUDIT,
  INSTANCE_CAPABILITIES,
  FLOWS,
  FLOW_REVISIONS,
  FLOW_MEMORY,
  FLOW_EVALUATIONS,
  DISPATCHES,
  DISPATCH_INPUTS,
  DISPATCH_OUTPUTS,
  DISPATCH_ANSWERS,
  BATCHES,
  BATCH_CHUNKS,
  BATCH_WAVES,
  BATCH_ANSWERS,
  POOL_PARCELS,
  POOL_BATCHES,
  OPEN_POOLS,
  OPEN_BATCHES,
  IDEMPOTENCY,
  JOBS,
  PLANS,
  PLAN_STEPS,
  PLAN_OUTPUTS,
  ACTIVE_PLANS,
  PLAN_SCHEDULES,
  SCHEDULING_TENANTS,
  PLAN_SCHEDULE_TICKS,
  RUN_RECORDS,
  RUN_EVENTS,
  OPEN_RUNS,
  SPENDING,
  USAGE,
  USAGE_TENANTS,
  WEBHOOK_OUTBOX,
  WEBHOOK_RECEIVERS,
  WEBHOOK_DELIVERIES,
  FILES,
  FILE_CONTENTS,
  FILE_DUES,
]
