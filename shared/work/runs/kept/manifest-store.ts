import { AppError } from '../../../kernel/errors.ts'
import { newToken } from '../../../kernel/ids.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { contentOf, readAll } from '../../../platform/objects/content.ts'
import type { Objects, WriteCondition } from '../../../platform/objects/port.ts'
import type { Gate } from './gate.ts'
import { EMPTY_CONTENT, MAX_MANIFEST_BYTES, type Manifest, readManifest, writeManifest } from './manifest.ts'

/** `path` is where this process has the folder. */
export type FolderIdentity = { tenant: TenantId; scope: string; path: string }

type Found = { manifest: Manifest; tag: string }

const CLAIM_TRIES = 5

/** The manifest of one folder in the store. It is written by compare-and-set. */
export class ManifestStore {
  readonly #identity: FolderIdentity
  readonly #name: string
  readonly #objects: Objects
  /** The last time at which the manifest was written or read, on the clock of `performance.now()`. */
  #usedMs = performance.now()

  constructor(identity: FolderIdentity, name: string, objects: Objects) {
    this.#identity = identity
    this.#name = name
    this.#objects = objects
  }

  /** How long this process has neither written nor read the manifest. */
  get unusedMs(): number {
    return performance.now() - this.#usedMs
  }

  noteUse(): void {
    this.#usedMs = performance.now()
  }

  exists(): Promise<boolean> {
    return this.#objects.has(manifestKey(this.#name))
  }

  /** Writes the manifest as the newest owner. A new owner name also gives the objects of this process unique names. */
  async claim(): Promise<Found & { isNew: boolean }> {
    const { tenant, scope } = this.#identity
    for (let tries = 0; tries < CLAIM_TRIES; tries++) {
      const found = await this.#find()
      const before = found?.manifest ?? { ...EMPTY_CONTENT, revision: 0 }
      const manifest = { ...before, tenant, scope, owner: newToken(), revision: before.revision + 1 }
      const tag = await this.put(manifest, found ? { tag: found.tag } : 'absent')
      if (tag !== undefined) return { manifest, tag, isNew: !found }
    }
    throw new AppError('unavailable', 'the files are in use at another server; try again', { retryAfterSecs: 1 })
  }

  /** Returns the tag; `undefined` when another process has written the manifest. */
  async put(manifest: Manifest, when: WriteCondition): Promise<string | undefined> {
    const content = contentOf(writeManifest(manifest))
    this.noteUse()
    const tag = await this.#objects.write(manifestKey(this.#name), content, when)
    if (tag !== undefined) return tag
    const found = await this.#find() // An attempt without an answer may have written it.
    return found && writeManifest(found.manifest) === writeManifest(manifest) ? found.tag : undefined
  }

  async #find(): Promise<Found | undefined> {
    const found = await this.#objects.find(manifestKey(this.#name))
    if (!found) return undefined
    const text = (await readAll(found.body, MAX_MANIFEST_BYTES)).toString()
    try {
      return { manifest: readManifest(text), tag: found.tag }
    } catch (cause) {
      throw unreadable(cause)
    }
  }
}

export const unreadable = (cause: unknown): AppError =>
  new AppError('unavailable', 'the stored files cannot be read: report this to the operator', { cause })

/** The key prefix of all folders' manifests, followed by their names: `TENANT/SCOPE`, as `workspacePath` makes them. */
export const MANIFESTS = 'folders/'

export const manifestKey = (name: string): string => `${MANIFESTS}${name}`

export const filesPrefix = (name: string): string => `files/${name}/`

/** Deletes a folder's objects; the manifest comes last, because without it remaining objects would not be found. */
export async function removeKept(objects: Objects, name: string, gate: Gate): Promise<void> {
  if (!(await objects.has(manifestKey(name)))) return
  let keys: string[] = []
  const deleteAll = async () => {
    await gate.each(keys, (key) => objects.delete(key))
    keys = []
  }
  for await (const { key } of objects.list(filesPrefix(name))) if (keys.push(key) === BATCH) await deleteAll()
  await deleteAll()
  await objects.delete(manifestKey(name))
}

const BATCH = 1_000
