import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { AppError } from '../../kernel/errors.ts'
import { newToken } from '../../kernel/ids.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { contentOf } from '../../platform/objects/content.ts'
import type { Objects } from '../../platform/objects/port.ts'
import type { Collection, Stored } from '../../platform/store/port.ts'
import { type FileContents, objectKey } from './contents.ts'
import { factsOf, IMAGE_HEAD_BYTES } from './media-type.ts'
import type { FileRecord, StoredFile, UploadState } from './records.ts'

/** How much of a file has arrived. */
export type FileUpload = { file_id: string; name: string; bytes: number; offset: number; created_at: string }

type Parts = {
  records: Collection
  contents: FileContents
  objects: Objects
  /** The creation and expiry times of a file that is complete now. */
  times(retentionMs: number): Pick<FileRecord, 'created_at' | 'expires_at'>
  hasExpired(found: Stored): boolean
}

/** Announced files without bytes are kept for this time, because their upload may still be running. */
export const REST_MS = 3_600_000

/** Received bytes stay in memory up to this length; at most this much is lost when the process dies. */
const PART_BYTES = 2 * 1024 * 1024

/**
 * Files whose bytes arrive in parts, over several connections and processes (D43.5b). Each part is an object. The record of the file names
 * the parts and is replaced by compare-and-set, so that one of two concurrent requests with the same part is refused. After the last part all parts
 * become one object.
 */
export class FileUploads {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Throws `not_found` for a file that is unknown or has expired. */
  async check(tenant: TenantId, fileId: string): Promise<void> {
    await this.#find(tenant, fileId)
  }

  /** Throws `not_found` as `check` does. An upload that has all bytes but was interrupted before its end is completed here. */
  async get(tenant: TenantId, fileId: string): Promise<FileUpload> {
    const found = await this.#find(tenant, fileId)
    const file = found.doc as StoredFile
    if (file.upload && offsetOf(file) === file.bytes) await this.#finish(tenant, found)
    const { file_id, name, bytes, created_at } = file
    return { file_id, name, bytes, created_at, offset: offsetOf(file) }
  }

  /**
   * Receives bytes of a file from `offset` on. Bytes that arrived before `chunks` throws are kept. Returns the new offset. Throws `conflict` when the
   * file does not end at `offset`, and `not_found` as `check` does.
   */
  async receive(tenant: TenantId, { fileId, offset }: UploadPlace, chunks: AsyncIterable<Uint8Array>): Promise<number> {
    let found = await this.#find(tenant, fileId)
    if (offsetOf(found.doc as StoredFile) !== offset) throw movedOn(fileId)
    for await (const part of inParts(chunks)) found = await this.#append(tenant, found, part)
    const file = found.doc as StoredFile
    if (file.upload && offsetOf(file) === file.bytes) await this.#finish(tenant, found)
    return offsetOf(file)
  }

  async #append(tenant: TenantId, found: Stored, part: Uint8Array): Promise<Stored> {
    const file = found.doc as StoredFile & { upload: UploadState }
    const object = objectKey(tenant, file.file_id, newToken())
    await this.#parts.objects.write(object, contentOf(part))
    const parts = [...file.upload.parts, { object, bytes: part.length }]
    const doc: StoredFile = { ...file, upload: { ...file.upload, parts } }
    if (await this.#parts.records.replaceIfVersion(tenant, { ...found, doc }))
      return { doc, version: found.version + 1 }
    await this.#parts.objects.delete(object)
    throw movedOn(file.file_id)
  }

  async #finish(tenant: TenantId, found: Stored): Promise<void> {
    const { records, contents, times } = this.#parts
    const { upload, ...file } = found.doc as StoredFile & { upload: UploadState }
    const { sha256, head } = await readWhole(this.#bytesOf(upload))
    const use = { tenant, fileId: file.file_id, sha256 }
    const due = await contents.announceBytes(use)
    if (!due) throw unknownFile(file.file_id)
    await contents.use(use, { bytes: file.bytes, sha256, open: () => Readable.from(this.#bytesOf(upload)) })
    const doc: FileRecord = { ...file, ...(await factsOf(head, file.name)), sha256, ...times(upload.retention_ms) }
    if (await records.replaceIfVersion(tenant, { ...found, doc })) {
      const [fromMs, untilMs] = [Date.parse(doc.created_at), Date.parse(doc.expires_at)]
      await contents.setDue(file.file_id, Math.min(fromMs + REST_MS, untilMs)) // Parts of another process may still arrive.
      for (const { object } of upload.parts) await this.#parts.objects.delete(object)
      return
    }
    const now = await records.get(tenant, { file_id: file.file_id }) // Another process was first, or the upload was deleted meanwhile.
    if (now) return
    await contents.forget(due)
    throw unknownFile(file.file_id)
  }

  async *#bytesOf({ parts }: UploadState): AsyncGenerator<Uint8Array> {
    for (const { object } of parts) {
      const found = await this.#parts.objects.find(object)
      if (!found)
        throw new AppError('conflict', 'the upload was ended by another request meanwhile: ask for its offset again')
      yield* found.body
    }
  }

  async #find(tenant: TenantId, fileId: string): Promise<Stored> {
    const found = await this.#parts.records.get(tenant, { file_id: fileId })
    if (!found || this.#parts.hasExpired(found)) throw unknownFile(fileId)
    return found
  }
}

export type UploadPlace = { fileId: string; offset: number }

const offsetOf = ({ upload, bytes }: StoredFile): number =>
  upload ? upload.parts.reduce((sum, part) => sum + part.bytes, 0) : bytes

/** Collects arriving bytes into parts. After a failure it yields the bytes so far as a part, and then throws the failure. */
async function* inParts(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = []
  let bytes = 0
  const part = () => {
    const whole = Buffer.concat(held)
    held = []
    bytes = 0
    return whole
  }
  try {
    for await (const chunk of chunks) {
      held.push(chunk)
      bytes += chunk.length
      if (bytes >= PART_BYTES) yield part()
    }
  } catch (cause) {
    if (bytes > 0) yield part()
    throw cause
  }
  if (bytes > 0) yield part()
}

async function readWhole(chunks: AsyncIterable<Uint8Array>): Promise<{ sha256: string; head: Buffer }> {
  const hash = createHash('sha256')
  const head: Uint8Array[] = []
  let headBytes = 0
  for await (const chunk of chunks) {
    hash.update(chunk)
    if (headBytes >= IMAGE_HEAD_BYTES) continue
    head.push(chunk)
    headBytes += chunk.length
  }
  return { sha256: hash.digest('hex'), head: Buffer.concat(head).subarray(0, IMAGE_HEAD_BYTES) }
}

const movedOn = (fileId: string) =>
  new AppError(
    'conflict',
    `the upload ${fileId} does not end at this offset: ask for its offset with HEAD, and go on there`,
  )

export const unknownFile = (fileId: string) =>
  new AppError('not_found', `there is no file ${fileId}: it may have been deleted, or have expired`)
