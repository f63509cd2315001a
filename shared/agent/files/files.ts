import { createReadStream } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import type { AttachedFile } from '../../kernel/attachment.ts'
import { AppError, hasKind, invalidRequest } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { ByteRange, Objects } from '../../platform/objects/port.ts'
import type { Store, Stored } from '../../platform/store/port.ts'
import { attachable } from './attachable.ts'
import { decode, FileContents } from './contents.ts'
import { factsOf, headOf } from './media-type.ts'
import { FILE_CONTENTS, FILES, type FileRecord } from './records.ts'

export type FileLimits = {
  /** The files of a tenant, and their bytes together. */
  maxFiles: number
  maxBytes: number
  retentionMs: number
}

export const FILE_LIMITS: FileLimits = {
  maxFiles: 10_000,
  maxBytes: 20 * 1024 * 1024 * 1024,
  retentionMs: 30 * 24 * 3_600_000,
}

/** A file that is to be kept: on this machine's disk, or in memory. `retentionMs`: for how long; by default as the limits say. */
export type NewFile = { name: string; bytes: number; sha256: string; retentionMs?: number } & (
  | { path: string }
  | { content: Buffer }
)

/** `after`: the creation and the id of the last file of the page before. */
export type FilesQuery = { after?: readonly [createdAt: string, fileId: string] | undefined; limit: number }

export type OpenedFile = { record: FileRecord; body: AsyncIterable<Uint8Array> }

/** An unused object is left for this time: its upload may still be under way. */
const REST_MS = 3_600_000

/**
 * Files that a tenant has given to the product, or that its runs have delivered (D43). The record of a file is in the store, its bytes are in the
 * objects, each once for a tenant. Every method throws `unavailable` when one of the two does not answer.
 */
export class Files {
  readonly #records
  readonly #contents: FileContents
  readonly #objects: Objects
  readonly #limits: FileLimits
  readonly #now: () => number

  constructor(store: Store, objects: Objects, { limits = FILE_LIMITS, now = Date.now } = {}) {
    this.#records = store.collection(FILES)
    this.#contents = new FileContents(store.collection(FILE_CONTENTS), objects, now)
    this.#objects = objects
    this.#limits = limits
    this.#now = now
  }

  /** Keeps a file. Throws `invalid_request` (413) when the tenant has too many files, or too many bytes in them. */
  async add(tenant: TenantId, file: NewFile): Promise<FileRecord> {
    await this.#assertRoom(tenant, file.bytes)
    const { name, bytes, sha256, retentionMs = this.#limits.retentionMs } = file
    const facts = await factsOf('path' in file ? await headOf(file.path) : file.content, name)
    const open = () => ('path' in file ? createReadStream(file.path) : file.content)
    await this.#contents.use(tenant, { bytes, sha256, open })
    const [created_at, expires_at] = [this.#now(), this.#now() + retentionMs].map((ms) => new Date(ms).toISOString())
    const record = { file_id: newId('file'), name, ...facts, bytes, sha256, created_at, expires_at } as FileRecord
    await this.#records.insert(tenant, record)
    return record
  }

  /** Keeps a file unless the tenant has it under this name already, and for long enough: clients send a conversation's files again with each message. */
  async keep(tenant: TenantId, file: NewFile): Promise<FileRecord> {
    const same = (await this.#withContent(tenant, file.sha256)).map(recordOf).find(({ name, expires_at }) => {
      return name === file.name && Date.parse(expires_at) > this.#now() + this.#limits.retentionMs / 2
    })
    return same ?? this.add(tenant, file)
  }

  /** The files of these ids as a message has them. Throws `not_found` as `get` does, and `invalid_request` for one that no model may get. */
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
    if (!found || this.#hasExpired(found)) throw unknownFile(fileId)
    return recordOf(found)
  }

  /** Opens the bytes of a file, or a part of them. Throws `not_found` as `get` does. */
  async open(tenant: TenantId, fileId: string, range?: ByteRange): Promise<OpenedFile> {
    const record = await this.get(tenant, fileId)
    const object = await this.#contents.objectOf(tenant, record.sha256)
    const found = object === undefined ? undefined : await this.#objects.find(object, range)
    if (!found) throw unknownFile(fileId) // It was deleted meanwhile.
    return { record, body: found.body }
  }

  /** The newest first. Has fewer than `limit` only at the end of the list: it reads on where some have expired. */
  async page(tenant: TenantId, { after, limit }: FilesQuery): Promise<FileRecord[]> {
    const files: FileRecord[] = []
    for (let from = after; ; ) {
      const found = await this.#records.page(tenant, { after: from, limit })
      files.push(...found.filter((each) => !this.#hasExpired(each)).map(recordOf))
      const last = found.at(-1)
      if (!last || found.length < limit || files.length >= limit) return files.slice(0, limit)
      const { created_at, file_id } = recordOf(last)
      from = [created_at, file_id]
    }
  }

  /** Deletes a file; its bytes, too, when no other file of the tenant has the same. Throws `not_found` as `get` does. */
  async delete(tenant: TenantId, fileId: string): Promise<void> {
    const { sha256 } = await this.get(tenant, fileId)
    if (!(await this.#records.delete(tenant, { file_id: fileId }))) throw unknownFile(fileId)
    await this.#contents.release(tenant, sha256)
  }

  /** Deletes the files that have expired, and the bytes that an upload or a deletion left behind when it broke off. */
  async sweep(): Promise<void> {
    for await (const { key, ageMs } of this.#objects.list('')) {
      const [tenant, sha256] = decode(key)
      for (const found of await this.#withContent(tenant, sha256)) {
        if (!this.#hasExpired(found)) continue
        const { file_id } = found.doc as FileRecord
        if (await this.#records.delete(tenant, { file_id })) await this.#contents.release(tenant, sha256)
      }
      if (ageMs < REST_MS) continue
      const isUsed = async () => (await this.#withContent(tenant, sha256)).length > 0
      await this.#contents.sweep(key, { restMs: REST_MS, isUsed })
    }
  }

  #withContent(tenant: TenantId, sha256: string): Promise<Stored[]> {
    return this.#records.page(tenant, { where: { sha256 }, limit: 1_000 })
  }

  /** Uploads at the same time may exceed the limits by one file each. */
  async #assertRoom(tenant: TenantId, bytes: number): Promise<void> {
    const { maxFiles, maxBytes } = this.#limits
    const { count, sum } = await this.#records.total(tenant, {})
    if (count < maxFiles && sum + bytes <= maxBytes) return
    const message = `there is room for ${maxFiles} files of ${maxBytes} bytes together, and this one is too much: delete some first`
    throw invalidRequest(message, { status: 413 })
  }

  #hasExpired({ doc }: Stored): boolean {
    return Date.parse((doc as FileRecord).expires_at) <= this.#now()
  }
}

const recordOf = ({ doc }: Stored): FileRecord => doc as FileRecord

const unknownFile = (fileId: string) =>
  new AppError('not_found', `there is no file ${fileId}: it may have been deleted, or have expired`)
