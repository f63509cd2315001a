import { rename, rm } from 'node:fs/promises'
import type { UnstoredFile } from '../../../agent/engine/call-progress.ts'
import { removeWorkspace } from '../../../agent/tools/workspace/workspace.ts'
import { AppError } from '../../../kernel/errors.ts'
import { newToken } from '../../../kernel/ids.ts'
import type { Log } from '../../../kernel/log.ts'
import type { Objects } from '../../../platform/objects/port.ts'
import type { SaveProgress } from '../workspaces.ts'
import type { Gate } from './gate.ts'
import { isSameContent, type KeptFile, type Manifest, type StoredContent } from './manifest.ts'
import { type FolderIdentity, filesPrefix, ManifestStore, removeKept, unreadable } from './manifest-store.ts'
import { type ScanLimits, scanFolder, TooMuch } from './scan.ts'
import { type HashedFiles, sendContents } from './send.ts'
import { fetchContent } from './transfer.ts'

export type KeptFolderDeps = {
  objects: Objects
  limits: ScanLimits
  /** Limits the file transfers of all folders. */
  gate: Gate
  log: Log
}

/** The stored state of a folder that this process has claimed. */
type Claim = { manifest: Manifest; tag: string; hashed: HashedFiles; sent: Map<string, StoredContent> }

const RETRY_MS = 5_000

/**
 * A session's or plan's folder that the store keeps. Its manifest is written by compare-and-set: a process that fetches the folder claims it by
 * writing the manifest again; the process that had it before notices that and writes nothing more. One operation on the folder runs at a time.
 */
export class KeptFolder {
  readonly identity: FolderIdentity
  readonly #name: string
  readonly #deps: KeptFolderDeps
  readonly #manifest: ManifestStore
  #last: Promise<unknown> = Promise.resolve()
  #bringing: Promise<void> | undefined
  #claim: Claim | undefined
  #isBehind = false
  #retry: NodeJS.Timeout | undefined
  #leftOut: ReadonlySet<string> = new Set()
  readonly #watchers = new Set<(progress: SaveProgress) => void>()

  constructor(identity: FolderIdentity, name: string, deps: KeptFolderDeps) {
    this.identity = identity
    this.#name = name
    this.#deps = deps
    this.#manifest = new ManifestStore(identity, name, deps.objects)
  }

  /** Whether the store lacks changes of this process. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  /** Resolves when the files are here. */
  bring(): Promise<void> {
    this.#bringing ??= this.#next(() => this.#bring()).catch((cause: unknown) => {
      this.#bringing = undefined
      this.#deps.log.error('stored files could not be brought here', { folder: this.#name, cause })
      throw cause
    })
    return this.#bringing
  }

  /**
   * Resolves when the store has all files; at once if they were never fetched. Throws `unavailable`, and then tries again later by itself;
   * `TooMuch`; and `conflict` when another process has claimed the folder. `onProgress` is called during this operation, and during an earlier
   * one that it waits for.
   */
  async save(onProgress: (progress: SaveProgress) => void = () => {}): Promise<void> {
    if (!this.#bringing) return
    this.#watchers.add(onProgress)
    try {
      await this.#next(() => this.#trySave())
    } finally {
      this.#watchers.delete(onProgress)
    }
  }

  /** The files whose newest content the store lacks, as far as it is known. */
  async unstored(): Promise<UnstoredFile[]> {
    const claim = this.#claim
    const scan = claim && (await scanFolder(this.identity.path, { maxBytes: Infinity, maxFiles: Infinity }))
    if (!claim || !scan) return []
    const stored = new Map(claim.manifest.files.map((file) => [file.path, file]))
    return scan.files.flatMap(({ path, bytes, mtimeMs }) => {
      const known = stored.get(path)
      return known?.bytes === bytes && known.mtimeMs === mtimeMs ? [] : [{ path, mtimeMs }]
    })
  }

  /** Returns the files that are missing here, or whose content differs; all of them if the store cannot be read. */
  async lacks(files: readonly UnstoredFile[]): Promise<string[]> {
    if (files.length === 0) return []
    const scan = await this.bring().then(
      () => scanFolder(this.identity.path, this.#deps.limits),
      () => undefined, // The failure is already reported.
    )
    const here = new Map(scan?.files.map(({ path, mtimeMs }) => [path, mtimeMs]))
    return files.flatMap(({ path, mtimeMs }) => (here.get(path) === mtimeMs ? [] : [path]))
  }

  /** Leaves the folder to other processes, and removes it here unless the store lacks some of its content. */
  release(): Promise<void> {
    return this.#next(async () => {
      if (this.#isBehind) await this.#trySave().catch((cause: unknown) => this.#report(cause))
      this.#forget()
      if (this.#isBehind) return
      await removeWorkspace(this.identity.path)
    })
  }

  /** Removes the folder, here and in the store. */
  remove(): Promise<void> {
    return this.#next(async () => {
      this.#forget()
      this.#isBehind = false
      await removeWorkspace(this.identity.path)
      await removeKept(this.#deps.objects, this.#name, this.#deps.gate)
    })
  }

  /** Shows the store that the folder is in use, unless it has seen that within `ms`. */
  touch(ms: number): Promise<void> {
    if (this.#manifest.unusedMs < ms) return Promise.resolve()
    return this.#next(async () => {
      this.#manifest.noteUse()
      if (this.#claim) await this.#write(this.#claim.manifest, this.#claim.hashed)
      else if (await this.#manifest.exists()) await this.#manifest.claim()
    })
  }

  #next<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task)
    this.#last = result.catch(() => {})
    return result
  }

  #forget(): void {
    clearTimeout(this.#retry)
    this.#bringing = undefined
    this.#claim = undefined
  }

  async #bring(): Promise<void> {
    const { objects, gate } = this.#deps
    const { path } = this.identity
    const claim = await this.#manifest.claim()
    await removeWorkspace(path)
    if (claim.isNew) return this.#use(claim)
    const staged = `${path}.${newToken()}.new`
    const keyOf = (object: string) => `${filesPrefix(this.#name)}${object}`
    try {
      await fetchContent(staged, claim.manifest, { objects, keyOf, gate })
      await rename(staged, path)
    } catch (cause) {
      await rm(staged, { recursive: true, force: true })
      throw cause instanceof AppError ? cause : unreadable(cause)
    }
    this.#use(claim)
  }

  #use({ manifest, tag }: Pick<Claim, 'manifest' | 'tag'>): void {
    this.#claim = { manifest, tag, hashed: new Map(), sent: new Map() }
  }

  async #trySave(): Promise<void> {
    clearTimeout(this.#retry)
    try {
      await this.#save()
      this.#isBehind = false
    } catch (cause) {
      this.#isBehind = this.#claim !== undefined
      const retry = () => void this.save().catch(() => {}) // `save` tries again by itself, and `release` reports files that are still missing.
      if (this.#isBehind && !(cause instanceof TooMuch)) this.#retry = setTimeout(retry, RETRY_MS).unref()
      throw cause
    }
  }

  async #save(): Promise<void> {
    const claim = this.#claim
    const scan = claim && (await scanFolder(this.identity.path, this.#deps.limits))
    if (!claim || !scan) return
    const { objects, gate } = this.#deps
    const place = { root: this.identity.path, prefix: filesPrefix(this.#name), objects, gate }
    const onProgress = (progress: SaveProgress) => {
      for (const watcher of this.#watchers) watcher(progress)
    }
    const { files, hashed } = await sendContents(scan.files, { ...claim, ...place, onProgress })
    const content = { folders: scan.folders, files, links: scan.links }
    const unread = scan.files.flatMap(({ path }) => (hashed.has(path) ? [] : [path]))
    this.#reportLeftOut([...scan.leftOut, ...unread])
    if (isSameContent(content, claim.manifest) && claim.sent.size === 0) {
      this.#claim = { ...claim, hashed }
      return
    }
    await this.#write({ ...claim.manifest, ...content }, hashed)
    const kept = new Set(files.map(({ object }) => object))
    this.#discard(claim.manifest.files.filter(({ object }) => !kept.has(object)))
  }

  async #write(content: Manifest, hashed: HashedFiles): Promise<void> {
    if (!this.#claim) return
    const manifest = { ...content, revision: this.#claim.manifest.revision + 1 }
    const tag = await this.#manifest.put(manifest, { tag: this.#claim.tag })
    if (tag === undefined) {
      this.#forget()
      throw new AppError('conflict', 'another server has taken the files over')
    }
    this.#claim = { manifest, tag, hashed, sent: new Map() }
  }

  /** Deletes contents that the manifest no longer names. If that fails, they are deleted with the folder. */
  #discard(files: readonly KeptFile[]): void {
    const { objects, gate } = this.#deps
    const keys = new Set(files.map(({ object }) => `${filesPrefix(this.#name)}${object}`))
    void this.#next(() => gate.each(keys, (key) => objects.delete(key))).catch(() => {})
  }

  #report(cause: unknown): void {
    this.#deps.log.error('files could not be stored; they are on this machine only', { folder: this.#name, cause })
  }

  #reportLeftOut(paths: readonly string[]): void {
    const isKnown = paths.every((path) => this.#leftOut.has(path))
    this.#leftOut = new Set(paths)
    if (isKnown) return
    this.#deps.log.warn('links that lead out, files that cannot be read and special files are not stored', {
      ...{ folder: this.#name, count: paths.length, first: paths[0] },
    })
  }
}
