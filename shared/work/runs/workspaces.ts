import type { UnstoredFile } from '../../agent/engine/call-progress.ts'
import { fileSystemTime, markWorkspaces, sweepWorkspaces } from '../../agent/tools/workspace/sweep.ts'
import { copyWorkspace, removeWorkspace, workspacePath } from '../../agent/tools/workspace/workspace.ts'
import type { TenantId } from '../../kernel/tenant.ts'

/** The folders of a process's sessions, runs and plans. A scope is what `workspacePath` takes. */
export type Workspaces = {
  /** Returns the path of a folder, which may not exist yet. */
  open(tenant: TenantId, scope: string): string
  /** The same for the folder of a session or plan, which another process may have made. */
  openKept(tenant: TenantId, scope: string): string
  /** Removes a folder that was opened. */
  remove(tenant: TenantId, scope: string): Promise<void>
  /** Copies a folder that the processes share. Left out: they share none. */
  copy?(tenant: TenantId, from: string, to: string): Promise<void>
  /** Leaves a folder to another process. */
  release(tenant: TenantId, scope: string): void
  readonly openCount: number
  /** Marks the open folders as used, and removes those that workers left behind an hour ago or earlier. */
  sweep(): Promise<void>
  /** Where the processes share no folder: brings sessions' and plans' folders here, and stores them. */
  readonly kept?: KeptFiles
}

/** How many of a folder's files are stored. */
export type SaveProgress = { stored: number; files: number }

export type KeptFiles = {
  /** Resolves when the files of a folder are here. Throws `unavailable`. */
  bring(tenant: TenantId, scope: string): Promise<void>
  /**
   * Resolves when the store has the files of a folder. Throws `unavailable`, and tries again later by itself; `TooMuch`; and `conflict` when
   * another process has taken them over. `onProgress` is called while it goes on.
   */
  save(tenant: TenantId, scope: string, onProgress?: (progress: SaveProgress) => void): Promise<void>
  /** The files of a folder whose newest content the store lacks. */
  unstored(tenant: TenantId, scope: string): Promise<readonly UnstoredFile[]>
  /** Brings a folder here, and returns the paths of those of its files that are not as another process had them. */
  lacks(tenant: TenantId, scope: string, files: readonly UnstoredFile[]): Promise<readonly string[]>
  /** Stores what is left, and removes what this process has on its disk. */
  close(): Promise<void>
}

/** Called with the owner of a folder that is removed or left to another process, whether it was opened or not. */
export type LeaveListener = (owner: { tenant: TenantId; scope: string }) => void

type WorkspacesOptions = {
  /** A session that is stored lives for this long after its worker, and its folder with it. */
  storedMs?: number
  onLeft?: LeaveListener | undefined
}

/** Remembers which folders are open, so that removing a run that used no files costs no file system call. */
export function createWorkspaces(root: string, { storedMs = 0, onLeft }: WorkspacesOptions = {}): Workspaces {
  const opened = new Set<string>()
  const open = (tenant: TenantId, scope: string) => {
    const path = workspacePath(root, tenant, scope)
    opened.add(path)
    return path
  }
  return {
    open,
    openKept: open,
    async remove(tenant, scope) {
      onLeft?.({ tenant, scope })
      const path = workspacePath(root, tenant, scope)
      if (opened.delete(path)) await removeWorkspace(path)
    },
    copy: (tenant, from, to) => copyWorkspace(workspacePath(root, tenant, from), open(tenant, to)),
    release(tenant, scope) {
      onLeft?.({ tenant, scope })
      opened.delete(workspacePath(root, tenant, scope))
    },
    get openCount() {
      return opened.size
    },
    async sweep() {
      const now = await fileSystemTime(root)
      if (!now) return
      await markWorkspaces(opened, now)
      await sweepWorkspaces(root, { now, storedMs, isOpen: (path) => opened.has(path) })
    },
  }
}
