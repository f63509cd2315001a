import type { Decision } from '../../shared/agent/engine/permissions.ts'
import type { DecidedPermission, DecidedPermissions } from '../../shared/cluster/permissions/decided.ts'
import type { PendingPermission } from '../../shared/cluster/permissions/store.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Audit } from '../../shared/tenancy/tenant-config/config.ts'
import { BackgroundWrites } from './background-writes.ts'

export type DecisionAuditDeps = {
  decided: Pick<DecidedPermissions, 'add'>
  auditOf(tenant: TenantId): Promise<Audit>
  log: Log
}

/** Records who decided which permission request when and how (D24.3). */
export type DecisionAudit = {
  record(request: PendingPermission, decision: Decision): void
  /** Resolves when everything that was recorded is stored. */
  settled(): Promise<void>
}

export function createDecisionAudit({ decided, auditOf, log }: DecisionAuditDeps): DecisionAudit {
  const writes = new BackgroundWrites((why, what, cause) =>
    log.error(`a decision about a permission was not recorded: ${why}`, { ...what, cause }),
  )
  return {
    record(request, decision) {
      const decidedAt = new Date().toISOString()
      writes.add({ permission_id: request.id }, async () => {
        const audit = await auditOf(request.tenant)
        await decided.add(request.tenant, recordOf(request, decision, { decidedAt, audit }), audit.retention_days)
      })
    },
    settled: () => writes.settled(),
  }
}

/** A longer input or preview is left out. */
const MAX_INPUT_CHARS = 64 * 1024

function recordOf(
  { id, scopeId, runId, details }: PendingPermission,
  { allow, how, reason, remember, by, input: edited }: Decision,
  { decidedAt, audit }: { decidedAt: string; audit: Audit },
): DecidedPermission {
  const { tool_name, tool_use_id, created_at, message, input, preview } = details
  const ran = edited ?? input
  const isShort = JSON.stringify(ran).length <= MAX_INPUT_CHARS
  const seen = edited === undefined && JSON.stringify(preview ?? '').length <= MAX_INPUT_CHARS ? preview : undefined
  return {
    id,
    session_id: scopeId,
    run_id: runId,
    tool_name,
    tool_use_id,
    allow,
    how,
    ...(by !== undefined && { by }),
    edited: edited !== undefined,
    remembered: remember !== undefined,
    created_at,
    decided_at: decidedAt,
    ...(audit.store_payloads && { message, reason, ...(isShort && { input: ran }), ...(seen && { preview: seen }) }),
  }
}
