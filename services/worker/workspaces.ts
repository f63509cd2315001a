import type { TenantId } from '../../shared/tenant.ts'
import { removeWorkspace, workspacePath } from '../../shared/tools/workspace/workspace.ts'

/** The folders of this worker's sessions and runs. */
export type Workspaces = {
  /** Where a session's or a one-shot run's folder is, or will be. */
  open(tenant: TenantId, scopeId: string): string
  remove(tenant: TenantId, scopeId: string): Promise<void>
}

/** Most runs touch no file: only the folders that a tool was given, or that may have come with a session, are looked for when they are to go. */
export function createWorkspaces(root: string): Workspaces {
  const opened = new Set<string>()
  return {
    open(tenant, scopeId) {
      const path = workspacePath(root, tenant, scopeId)
      opened.add(path)
      return path
    },
    async remove(tenant, scopeId) {
      if (opened.delete(workspacePath(root, tenant, scopeId))) await removeWorkspace(root, tenant, scopeId)
    },
  }
}
