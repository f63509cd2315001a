import type { TenantId } from '../../shared/tenant.ts'
import { removeWorkspace, workspacePath } from '../../shared/tools/workspace/workspace.ts'

/** The folders of a process's sessions and runs. */
export type Workspaces = {
  /** Returns the path of a session's or one-shot run's folder, which may not exist yet. */
  open(tenant: TenantId, scopeId: string): string
  remove(tenant: TenantId, scopeId: string): Promise<void>
}

/** Remembers which folders were opened, so that removing a run that used no files costs no file system call. */
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
