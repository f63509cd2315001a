import { createReadStream } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import type { AttachedFile } from '../../kernel/attachment.ts'
import { hasKind, invalidRequest } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { ByteRange, Objects } from '../../platform/objects/port.ts'
import type { Store, Stored } from '../../platform/store/port.ts'
import { attachable } from './attachable.ts'
import { FileContents, partsOf } from './contents.ts'
import { factsOf, headOf } from './media-type.ts'
import { FILES, type FileDue, type FileRecord, type StoredFile } from './records.ts'
import { FileUploads, REST_MS, unknownFile } from './uploads.ts'

export type FileLimits = {
  /** The limits of a tenant's files: their number, and the sum of their bytes. */
  maxFiles: number
  maxBytes: number
  /** How long an upload in parts may take. */
  uploadMs: number
}

export const FILE_LIMITS: FileLimits = {
  maxFiles: 10_000,
  maxBytes: 20 * 1024 * 1024 * 1024,
  uploadMs: 24 * 3_600_000,
}

const DAY_MS = 24 * 3_600_000

/** A file to keep, from this machine's disk or from memory. `retentionMs`: for how long, but never longer than the tenant keeps its files. */
export type NewFile = { name: string; bytes: number; sha256: string; retentionMs?: number } & (
  | { path: string }
  | { content: Buffer }
)

/** `after`: the creation and the id of the last file of the page before. */
export type FilesQuery = { after?: readonly [createdAt: string, fileId: string] | undefined; limit: number }

export type OpenedFile = { record: FileRecord; body: AsyncIterable<Uint8Array> }

export type FilesOptions = {
  limits?: FileLimits
  /** For how many days a tenant keeps its files. */
  retentionDays?(tenant: TenantId): Promise<number>
  now?: () => number
}

/**
 * Files that a tenant has given to the product, or that its runs have delivered (D43). The record of a file is in the store, its bytes are in the
 * objects, each once for a tenant. Every method throws `unavailable` when one of the two does not answer.
 */
export class Files {
  readonly uploads: FileUploads
  readonly #records
  readonly #contents: FileContents
  readonly #objects: Objects
  readonly #limits: FileLimits
  readonly #retentionDays: (tenant: TenantId) => Promise<number>
  readonly #now: () => number

  constructor(store: Store, objects: Objects, options: FilesOptions = {}) {
    const { limits = FILE_LIMITS, retentionDays = async () => 30, now = Date.now } = options
    this.#records = store.collection(FILES)
    this.#contents = new FileContents(store, objects, now)
    this.#objects = objects
    this.#limits = limits
    this.#retentionDays = retentionDays
    this.#now = now
    this.uploads = new FileUploads({
      ...{ records: this.#records, contents: this.#contents, objects },
      times: (retentionMs) => this.#times(retentionMs),
      hasExpired: (found) => this.#hasExpired(found),
    })
  }

  /** Keeps a file. Throws `invalid_request` (413) when the tenant has too many files, or too many bytes in them. */
  async add(tenant: TenantId, file: NewFile): Promise<FileRecord> {
    await this.#assertRoom(tenant, file.bytes)
    const { name, bytes, sha256, retentionMs } = file
    const facts = await factsOf('path' in file ? await headOf(file.path) : file.content, name)
    const times = this.#times(await this.#lifetimeOf(tenant, retentionMs))
    const use = { tenant, fileId: newId('file'), sha256 }
    await this.#contents.announce(use, this.#now() + REST_MS)
    await this.#contents.use(use, {
      bytes,
      sha256,
      open: () => ('path' in file ? createReadStream(file.path) : file.content),
    })
    const record: FileRecord = { file_id: use.fileId, name, ...facts, bytes, sha256, ...times }
    await this.#records.insert(tenant, record)
    await this.#contents.setDue(use.fileId, Date.parse(record.expires_at))
    return record
  }

  /** Begins a file whose bytes arrive in parts. They count towards the limits from now on. Throws as `add` does. */
  async begin(tenant: TenantId, { name, bytes, retentionMs }: Omit<NewFile, 'sha256'>): Promise<string> {
    await this.#assertRoom(tenant, bytes)
    const retention_ms = await this.#lifetimeOf(tenant, retentionMs)
    const use = { tenant, fileId: newId('file'), sha256: '' }
    const times = this.#times(this.#limits.uploadMs)
    await this.#contents.announce(use, Date.parse(times.expires_at))
    const upload = { parts: [], retention_ms }
    const record: StoredFile = { file_id: use.fileId, name, media_type: '', bytes, sha256: '', ...times, upload }
    await this.#records.insert(tenant, record)
    return use.fileId
  }

  /** Keeps a file, unless the tenant already has it under this name for long enough: clients send a conversation's files again with each message. */
  async keep(tenant: TenantId, file: NewFile): Promise<FileRecord> {
    const keptMs = await this.#lifetimeOf(tenant)
    const same = (await this.#withContent(tenant, file.sha256)).map(recordOf).find(({ name, expires_at }) => {
      return name === file.name && Date.parse(expires_at) > this.#now() + keptMs / 2
    })
    return same ?? this.add(tenant, file)
  }

  /**
   * The files with these ids, in the form of a message's files. Throws `not_found` as `get` does, and `invalid_request`
   * for a file that no model may get.
   */
  async attached(
    tenant: TenantId,
    fileIds: readonly string[],
    paramOf: (index: number) => string,
  ): Promise<AttachedFile[]> {
    const records: FileRecord[] = []
    for (const id of fileIds) records.push(await this.get(tenant, id))
    return attachable(records, paramOf)
  }

  /** The whole bytes of a file; `undefined` for one that `get` does not find. */
  async read(tenant: TenantId, fileId: string): Promise<Buffer | undefined> {
    try {
      return await buffer((await this.open(tenant, fileId)).body)
    } catch (cause) {
      if (hasKind(cause, 'not_found')) return undefined
      throw cause
    }
  }

  /** Throws `not_found` for an unknown file, one of another tenant, and one that has expired. */
  async get(tenant: TenantId, fileId: string): Promise<FileRecord> {
    const found = await this.#records.get(tenant, { file_id: fileId })
    if (!found || this.#hasExpired(found) || !isWhole(found)) throw unknownFile(fileId)
    return recordOf(found)
  }

  /** Opens the bytes of a file, or a part of them. Throws `not_found` as `get` does. */
  async open(tenant: TenantId, fileId: string, range?: ByteRange): Promise<OpenedFile> {
    const record = await this.get(tenant, fileId)
    const object = await this.#contents.objectOf(tenant, record.sha256)
    const found = object === undefined ? undefined : await this.#objects.find(object, range)
    if (!found) throw unknownFile(fileId) // The file was deleted meanwhile.
    return { record, body: found.body }
  }

  /** The newest first. A page has fewer than `limit` files only at the end of the list: expired and incomplete files are skipped. */
  async page(tenant: TenantId, { after, limit }: FilesQuery): Promise<FileRecord[]> {
    const files: FileRecord[] = []
    for (let from = after; ; ) {
      const found = await this.#records.page(tenant, { after: from, limit })
      files.push(...found.filter((each) => isWhole(each) && !this.#hasExpired(each)).map(recordOf))
      const last = found.at(-1)
      if (!last || found.length < limit || files.length >= limit) return files.slice(0, limit)
      const { created_at, file_id } = recordOf(last)
      from = [created_at, file_id]
    }
  }

  /** Deletes a file; its bytes, too, when no other file of the tenant has the same. With `isUpload`, an incomplete upload as well. Throws `not_found` as `get` does. */
  async delete(tenant: TenantId, fileId: string, { isUpload = false } = {}): Promise<void> {
    const found = await this.#records.get(tenant, { file_id: fileId })
    if (!found || this.#hasExpired(found) || !(isUpload || isWhole(found))) throw unknownFile(fileId)
    const due = await this.#contents.setDue(fileId, this.#now()) // Stored first, so that the deletion can be completed if it is interrupted.
    if (!(await this.#records.delete(tenant, { file_id: fileId }, found.version)))
      return this.delete(tenant, fileId, { isUpload })
    if (due) await this.#end(due, found)
  }

  /** Deletes the files and uploads that have expired, and the remains of interrupted uploads and deletions. It reads only entries that are due. */
  async sweep(): Promise<void> {
    const failures: unknown[] = []
    for await (const due of this.#contents.due())
      await this.#sweepOne(due).catch((cause: unknown) => failures.push(cause))
    if (failures.length > 0) throw failures[0]
  }

  async #sweepOne(due: FileDue): Promise<void> {
    const { file_id, owner: tenant } = due
    const found = await this.#records.get(tenant, { file_id })
    if (found && !this.#hasExpired(found)) {
      if (due.is_upload && isWhole(found)) await this.#contents.deleteAll(partsOf(due))
      await this.#contents.setDue(file_id, Date.parse(recordOf(found).expires_at))
    } else if (!found || (await this.#records.delete(tenant, { file_id }, found.version))) await this.#end(due, found)
  }

  /**
   * Deletes the remains of a file without a record. If the record existed a moment ago, parts of the upload may still
   * arrive, so the entry is kept for one more check.
   */
  async #end(due: FileDue, before: Stored | undefined): Promise<void> {
    if (due.is_upload) await this.#contents.deleteAll(partsOf(due))
    if (before && !isWhole(before)) await this.#contents.setDue(due.file_id, this.#now() + REST_MS)
    else await this.#contents.forget(due)
  }

  #withContent(tenant: TenantId, sha256: string): Promise<Stored[]> {
    return this.#records.page(tenant, { where: { sha256 }, limit: 1_000 })
  }

  async #lifetimeOf(tenant: TenantId, wantedMs = Infinity): Promise<number> {
    return Math.min(wantedMs, DAY_MS * (await this.#retentionDays(tenant)))
  }

  /** Concurrent uploads may exceed the limits by one file each. */
  async #assertRoom(tenant: TenantId, bytes: number): Promise<void> {
    const { maxFiles, maxBytes } = this.#limits
    const { count, sum } = await this.#records.total(tenant, {})
    if (count < maxFiles && sum + bytes <= maxBytes) return
    const message = `there is room for ${maxFiles} files of ${maxBytes} bytes together, and this one is too much: delete some first`
    throw invalidRequest(message, { status: 413 })
  }

  #times(retentionMs: number): Pick<FileRecord, 'created_at' | 'expires_at'> {
    const [created_at, expires_at] = [this.#now(), this.#now() + retentionMs].map((ms) => new Date(ms).toISOString())
    return { created_at, expires_at } as FileRecord
  }

  #hasExpired({ doc }: Stored): boolean {
    return Date.parse((doc as FileRecord).expires_at) <= this.#now()
  }
}

const recordOf = ({ doc }: Stored): FileRecord => doc as FileRecord

const isWhole = ({ doc }: Stored): boolean => (doc as StoredFile).upload === undefined
