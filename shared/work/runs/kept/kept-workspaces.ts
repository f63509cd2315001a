import { join } from 'node:path'
import {
  fileSystemTime,
  foldersIn,
  isAbandoned,
  isOfWorker,
  markWorkspaces,
} from '../../../agent/tools/workspace/sweep.ts'
import { makeWorkspace, removeWorkspace, workspacePath } from '../../../agent/tools/workspace/workspace.ts'
import { hasKind } from '../../../kernel/errors.ts'
import { newToken } from '../../../kernel/ids.ts'
import { parseJson } from '../../../kernel/json.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { readAll } from '../../../platform/objects/content.ts'
import type { Objects } from '../../../platform/objects/port.ts'
import { createWorkspaces, type KeptFiles, type LeaveListener, type Workspaces } from '../workspaces.ts'
import { KeptFolder, type KeptFolderDeps } from './kept-folder.ts'
import { MAX_MANIFEST_BYTES, type Manifest } from './manifest.ts'
import { MANIFESTS, manifestKey, removeKept } from './manifest-store.ts'

export type KeptWorkspacesDeps = KeptFolderDeps & {
  /** Which folders of dead processes this process removes from the store. */
  sweeps: Sweeps
  onLeft?: LeaveListener | undefined
}

export type Sweeps =
  /** The folders of sessions and one-shot runs, which are kept for `storedMs` after their worker has died. */
  | { storedMs: number }
  /** Plans' folders, which are not needed after the plan has ended. */
  | { isPlanOver(tenant: TenantId, scope: string): Promise<boolean> }

const HOUR_MS = 3_600_000
/** A folder in use is touched this often, so that no other process assumes that it is abandoned. */
const TOUCH_MS = HOUR_MS / 4

/**
 * Opens the folders of a process that shares no disk with the others: those of sessions, plans and stored one-shot runs are kept in a store. `parent`
 * itself may be shared, because each process has its own folder in it.
 */
export const openKeptWorkspaces = async (parent: string, deps: KeptWorkspacesDeps): Promise<KeptWorkspaces> =>
  new KeptWorkspaces(parent, await openRoot(parent), deps)

export class KeptWorkspaces implements Workspaces {
  readonly #parent: string
  readonly #root: string
  readonly #deps: KeptWorkspacesDeps
  readonly #plain: Workspaces
  readonly #folders = new Map<string, KeptFolder>()
  /** The folders that are being left. A folder is fetched again only after its former copy is gone. */
  readonly #leaving = new Map<string, Promise<void>>()
  /** Whether the store lacks some content of a folder that was left. */
  #isBehind = false
  readonly kept: KeptFiles

  constructor(parent: string, root: string, deps: KeptWorkspacesDeps) {
    this.#parent = parent
    this.#root = root
    this.#deps = deps
    this.#plain = createWorkspaces(root)
    this.kept = {
      bring: (tenant, scope) => this.#bring(tenant, scope),
      save: async (tenant, scope, onProgress) => this.#folders.get(workspacePath('', tenant, scope))?.save(onProgress),
      unstored: async (tenant, scope) => (await this.#folders.get(workspacePath('', tenant, scope))?.unstored()) ?? [],
      lacks: (tenant, scope, files) => this.#folderOf(tenant, scope).lacks(files),
      close: () => this.#close(),
    }
  }

  open(tenant: TenantId, scope: string): string {
    return this.#plain.open(tenant, scope)
  }

  openKept(tenant: TenantId, scope: string): string {
    return this.#folderOf(tenant, scope).identity.path
  }

  async remove(tenant: TenantId, scope: string): Promise<void> {
    this.#deps.onLeft?.({ tenant, scope })
    const folder = this.#take(tenant, scope)
    await (folder ? this.#leave(folder, () => folder.remove()) : this.#plain.remove(tenant, scope))
  }

  release(tenant: TenantId, scope: string): void {
    this.#deps.onLeft?.({ tenant, scope })
    const folder = this.#take(tenant, scope)
    if (folder)
      this.#leave(folder, () => folder.release()).catch(() => {}) // If this fails, only its copy on this disk remains.
    else this.#plain.release(tenant, scope)
  }

  get openCount(): number {
    return this.#plain.openCount + this.#folders.size
  }

  async sweep(): Promise<void> {
    await markRoot(this.#root)
    await sweepRoots(this.#parent)
    for (const folder of [...this.#folders.values()])
      await folder.touch(TOUCH_MS).catch((cause: unknown) => {
        if (!hasKind(cause, 'conflict')) throw cause
      })
    await sweepStore(this.#deps)
  }

  #folderOf(tenant: TenantId, scope: string): KeptFolder {
    const name = workspacePath('', tenant, scope)
    const known = this.#folders.get(name)
    if (known) return known
    const folder = new KeptFolder({ tenant, scope, path: workspacePath(this.#root, tenant, scope) }, name, this.#deps)
    this.#folders.set(name, folder)
    return folder
  }

  /** Returns the folder if this process has it open, and forgets it. */
  #take(tenant: TenantId, scope: string): KeptFolder | undefined {
    const name = workspacePath('', tenant, scope)
    const folder = this.#folders.get(name)
    this.#folders.delete(name)
    return folder
  }

  /** `leave` begins only after an earlier one for the same folder has ended, which may still be storing files. */
  #leave(folder: KeptFolder, leave: () => Promise<void>): Promise<void> {
    const { path } = folder.identity
    const left = (this.#leaving.get(path) ?? Promise.resolve()).then(leave)
    const done = left
      .catch(() => {})
      .then(() => {
        this.#isBehind ||= folder.isBehind
        if (this.#leaving.get(path) === done) this.#leaving.delete(path)
      })
    this.#leaving.set(path, done)
    return left
  }

  async #bring(tenant: TenantId, scope: string): Promise<void> {
    const folder = this.#folderOf(tenant, scope)
    await this.#leaving.get(folder.identity.path)
    await folder.bring()
  }

  async #close(): Promise<void> {
    for (const folder of this.#folders.values()) this.#leave(folder, () => folder.release()).catch(() => {})
    await Promise.all(this.#leaving.values())
    if (!this.#isBehind) await removeWorkspace(this.#root)
    await this.#deps.objects.close()
  }
}

/** Removes the folders in the store that nobody uses any more. */
async function sweepStore({ objects, gate, sweeps }: KeptWorkspacesDeps): Promise<void> {
  for await (const { key, ageMs } of objects.list(MANIFESTS)) {
    const name = key.slice(MANIFESTS.length)
    if (isOfWorker(name.slice(name.indexOf('/') + 1)) !== 'storedMs' in sweeps) continue
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
  if (!found) return false // Another process has already removed it.
  const text = (await readAll(found.body, MAX_MANIFEST_BYTES)).toString()
  const { tenant, scope } = (parseJson(text) ?? {}) as Partial<Manifest>
  if (tenant === undefined || scope === undefined) return false // A damaged manifest is left as it is; the others are swept.
  return isPlanOver(tenant as TenantId, scope)
}

const OF_PROCESS = /^process-[0-9a-f]{16}$/

/** Creates the folder of this process in that of its machine. */
async function openRoot(parent: string): Promise<string> {
  const root = join(parent, `process-${newToken()}`)
  await makeWorkspace(root)
  return root
}

/** Shows other processes of the machine that this one is alive. */
async function markRoot(root: string): Promise<void> {
  const now = await fileSystemTime(root)
  if (now) await markWorkspaces([root], now)
}

/** Removes the folders of processes without a sign of life for an hour. */
async function sweepRoots(parent: string): Promise<void> {
  const now = await fileSystemTime(parent)
  if (!now) return
  for (const name of await foldersIn(parent)) {
    const path = join(parent, name)
    if (OF_PROCESS.test(name) && (await isAbandoned(path, now, 0))) await removeWorkspace(path)
  }
}
