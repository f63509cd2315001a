import type { TenantId } from '../../kernel/tenant.ts'
import type { CollectionSpec } from '../../platform/store/port.ts'

/** A file as the API shows it (D43). */
export type FileRecord = {
  file_id: string
  name: string
  media_type: string
  /** The pixels of an image, as its header says. */
  width?: number
  height?: number
  bytes: number
  sha256: string
  created_at: string
  expires_at: string
}

/**
 * A record of the store. With `upload` it is not a file yet: its bytes arrive in parts, `media_type` and `sha256` are
 * empty, and it expires when the upload does.
 */
export type StoredFile = FileRecord & { upload?: UploadState }

/** The objects that have arrived, in their order. `retention_ms`: for how long the file is kept once it is whole. */
export type UploadState = { parts: { object: string; bytes: number }[]; retention_ms: number }

export const FILES: CollectionSpec = {
  name: 'files',
  key: ['file_id'],
  order: { within: [], by: ['created_at', 'file_id'], direction: 'descending' },
  filters: ['sha256'],
  total: { within: [], of: 'bytes' },
}

/**
 * The bytes of a tenant's files, stored once: `object` is their key. The record is written after the object and deleted before it, so that a record
 * always has its bytes. `used_ms` changes whenever a file begins to use the bytes, so that a concurrent deletion notices it.
 */
export type FileContent = { sha256: string; object: string; used_ms: number }

export const FILE_CONTENTS: CollectionSpec = { name: 'file_contents', key: ['sha256'] }

/**
 * Work that is due at `due_ms`: a file expires, or an upload may have been interrupted. The entry is written before anything else of the file and
 * deleted last, so that no other data of a file is left without an entry. `content` names the bytes that the file has, or is about to have; they
 * stay as long as such an entry exists. `object` is the one that is being deleted. The entries belong to no tenant, so that one query finds those of
 * all tenants.
 */
export type FileDue = {
  file_id: string
  owner: TenantId
  content: string
  is_upload: boolean
  due_ms: number
  object?: string
}

export const FILE_DUES: CollectionSpec = {
  name: 'file_dues',
  key: ['file_id'],
  order: { within: [], by: ['due_ms', 'file_id'], direction: 'ascending' },
  filters: ['content'],
}
