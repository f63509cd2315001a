import { isSessionFolder } from '../../../agent/tools/workspace/sweep.ts'
import { removeWorkspace, workspacePath } from '../../../agent/tools/workspace/workspace.ts'
import { hasKind } from '../../../kernel/errors.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { readAll } from '../../../platform/objects/content.ts'
import type { Objects } from '../../../platform/objects/port.ts'
import { createWorkspaces, type Workspaces } from '../workspaces.ts'
import { KeptFolder, type KeptFolderDeps } from './kept-folder.ts'
import { MANIFESTS, manifestKey, removeKept } from './keys.ts'
import { MAX_MANIFEST_BYTES, readManifest } from './manifest.ts'
import { markRoot, openRoot, sweepRoots } from './root.ts'

export type KeptWorkspacesDeps = KeptFolderDeps & {
  /** What this process removes of what dead processes left in the store. */
  sweeps: Sweeps
}

export type Sweeps =
  /** Sessions' folders: a session lives for `storedMs` after its worker. */
  | { storedMs: number }
  /** Plans' folders: nobody needs that of a plan that has ended. */
  | { isPlanOver(tenant: TenantId, scope: string): Promise<boolean> }

const HOUR_MS = 3_600_000
/** A folder that is in use is touched this often, so that no other process takes it for left behind. */
const TOUCH_MS = HOUR_MS / 4

/**
 * Folders of a process that shares no disk with the others: sessions' and plans' folders are kept in a store. `parent` may be shared all the
 * same, since the process has a folder of its own in it.
 */
export async function openKeptWorkspaces(
  parent: string,
  deps: KeptWorkspacesDeps,
): Promise<Workspaces & Required<Pick<Workspaces, 'kept'>>> {
  const root = await openRoot(parent)
  const plain = createWorkspaces(root)
  const folders = new Map<string, KeptFolder>()
  const folderOf = (tenant: TenantId, scope: string): KeptFolder => {
    const name = workspacePath('', tenant, scope)
    const folder =
      folders.get(name) ?? new KeptFolder({ tenant, scope, path: workspacePath(root, tenant, scope) }, name, deps)
    folders.set(name, folder)
    return folder
  }
  /** The folder that this process has open; it has it no more then. */
  const take = (tenant: TenantId, scope: string): KeptFolder | undefined => {
    const name = workspacePath('', tenant, scope)
    const folder = folders.get(name)
    folders.delete(name)
    return folder
  }
  const leaving = createLeaving()
  return {
    open: plain.open,
    openKept: (tenant, scope) => folderOf(tenant, scope).identity.path,
    async remove(tenant, scope) {
      const folder = take(tenant, scope)
      await (folder ? leaving.add(folder, folder.remove()) : plain.remove(tenant, scope))
    },
    release(tenant, scope) {
      const folder = take(tenant, scope)
      if (folder)
        leaving.add(folder, folder.release()).catch(() => {}) // Only its copy on this disk is left.
      else plain.release(tenant, scope)
    },
    get openCount() {
      return plain.openCount + folders.size
    },
    async sweep() {
      await markRoot(root)
      await sweepRoots(parent)
      for (const folder of [...folders.values()])
        await folder.touch(TOUCH_MS).catch((cause: unknown) => {
          if (!hasKind(cause, 'conflict')) throw cause
        })
      await sweepStore(deps)
    },
    kept: {
      async bring(tenant, scope) {
        const folder = folderOf(tenant, scope)
        await leaving.of(folder.identity.path)
        await folder.bring()
      },
      save: async (tenant, scope) => folders.get(workspacePath('', tenant, scope))?.save(),
      async close() {
        for (const folder of folders.values()) leaving.add(folder, folder.release()).catch(() => {})
        await leaving.all()
        if (![...leaving.behind].some((folder) => folder.isBehind)) await removeWorkspace(root)
        await deps.objects.close()
      },
    },
  }
}

/** The folders that are being left, by their paths: one is brought here again only when its former copy is gone. */
function createLeaving() {
  const under = new Map<string, Promise<void>>()
  const behind = new Set<KeptFolder>()
  return {
    behind,
    add(folder: KeptFolder, left: Promise<void>): Promise<void> {
      const { path } = folder.identity
      const done = left
        .catch(() => {})
        .then(() => {
          if (folder.isBehind) behind.add(folder)
          if (under.get(path) === done) under.delete(path)
        })
      under.set(path, done)
      return left
    },
    of: (path: string): Promise<void> | undefined => under.get(path),
    all: async () => void (await Promise.all(under.values())),
  }
}

/** Removes the folders in the store that nobody uses any more. */
async function sweepStore({ objects, gate, sweeps }: KeptWorkspacesDeps): Promise<void> {
  for await (const { key, ageMs } of objects.list(MANIFESTS)) {
    const name = key.slice(MANIFESTS.length)
    const isSession = isSessionFolder(name.slice(name.indexOf('/') + 1))
    if (isSession !== 'storedMs' in sweeps) continue
    const isLeft =
      'storedMs' in sweeps
        ? ageMs > HOUR_MS + sweeps.storedMs
        : ageMs > HOUR_MS && (await isOver(name, { objects, isPlanOver: sweeps.isPlanOver }))
    if (isLeft) await removeKept(objects, name, gate)
  }
}

type PlanLook = { objects: Objects; isPlanOver(tenant: TenantId, scope: string): Promise<boolean> }

async function isOver(name: string, { objects, isPlanOver }: PlanLook): Promise<boolean> {
  const found = await objects.find(manifestKey(name))
  if (!found) return false // Another process has removed it.
  const { tenant, scope } = readManifest((await readAll(found.body, MAX_MANIFEST_BYTES)).toString())
  return isPlanOver(tenant as TenantId, scope)
}
