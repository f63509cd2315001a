import type { PendingPermission } from '../../shared/cluster/permissions/store.ts'
import type { JsonObject } from '../../shared/kernel/events.ts'
import { newId } from '../../shared/kernel/ids.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'

/** A request as a worker opens it; it expires in five minutes, or in `waitsMs`. */
export function newRequest(
  fields: Partial<PendingPermission> = {},
  { input = { path: 'a.txt' }, waitsMs = 300_000 }: { input?: JsonObject; waitsMs?: number } = {},
): PendingPermission {
  const now = Date.now()
  return {
    id: newId('perm'),
    tenant: DEFAULT_TENANT,
    scopeId: newId('sess'),
    runId: newId('run'),
    details: {
      tool_name: 'Write',
      tool_use_id: 'call_1',
      input,
      message: 'Write wants to create a.txt',
      created_at: new Date(now).toISOString(),
      expires_at: new Date(now + waitsMs).toISOString(),
    },
    ...fields,
  }
}
