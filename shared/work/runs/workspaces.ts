import type { UnstoredFile } from '../../agent/engine/call-progress.ts'
import { fileSystemTime, markWorkspaces, sweepWorkspaces } from '../../agent/tools/workspace/sweep.ts'
import { copyWorkspace, removeWorkspace, workspacePath } from '../../agent/tools/workspace/workspace.ts'
import type { TenantId } from '../../kernel/tenant.ts'

/** The folders of a process's sessions, runs and plans. A scope is the argument of `workspacePath`. */
export type Workspaces = {
  /** Returns the path of a folder, which may not exist yet. */
  open(tenant: TenantId, scope: string): string
  /** The same for the folder of a session or plan, which another process may have created. */
  openKept(tenant: TenantId, scope: string): string
  /** Removes a folder that was opened. `undefined` when there is nothing to remove. */
  remove(tenant: TenantId, scope: string): Promise<void> | undefined
  /** Copies a folder that the processes share. Left out: they share none. */
  copy?(tenant: TenantId, from: string, to: string): Promise<void>
  /** Gives up a folder, because another process uses it now. */
  release(tenant: TenantId, scope: string): void
  readonly openCount: number
  /** Marks the open folders as used, and removes folders that dead workers left at least an hour ago. */
  sweep(): Promise<void>
  /** If the processes share no disk: downloads the folders of sessions and plans to this process, and stores them. */
  readonly kept?: KeptFiles
}

/** How many of a folder's files are stored. */
export type SaveProgress = { stored: number; files: number }

export type KeptFiles = {
  /** Resolves when the files of a folder are on this machine. Throws `unavailable`. */
  bring(tenant: TenantId, scope: string): Promise<void>
  /**
   * Resolves when the store has the files of a folder. Throws `unavailable`, and then tries again later by itself; `TooMuch`; and `conflict`
   * when another process has taken over the files. `onProgress` is called after each step.
   */
  save(tenant: TenantId, scope: string, onProgress?: (progress: SaveProgress) => void): Promise<void>
  /** The files of a folder whose newest content the store lacks. */
  unstored(tenant: TenantId, scope: string): Promise<readonly UnstoredFile[]>
  /** Downloads a folder, and returns the paths of the files that differ from those of another process. */
  lacks(tenant: TenantId, scope: string, files: readonly UnstoredFile[]): Promise<readonly string[]>
  /** Stores the remaining files, and removes the folders of this process from its disk. */
  close(): Promise<void>
}

/** Called with the owner of a folder that is removed or given up to another process, whether it was opened or not. */
export type LeaveListener = (owner: { tenant: TenantId; scope: string }) => void

type WorkspacesOptions = {
  /** How long a stored session, and its folder, outlive their worker. */
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
    remove(tenant, scope) {
      onLeft?.({ tenant, scope })
      if (opened.size === 0) return undefined
      const path = workspacePath(root, tenant, scope)
      return opened.delete(path) ? removeWorkspace(path) : undefined
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
