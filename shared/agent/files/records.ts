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

/** A record of the store. With `upload` it is no file yet: its bytes arrive in parts, `media_type` and `sha256` are empty, and it expires as the upload does. */
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
 * The bytes of a tenant's files, each once: `object` is their key in the objects. The record is written behind the object and deleted before it, so that
 * a record always has its bytes. `used_ms` changes with each file that takes them, so that who deletes them finds out.
 */
export type FileContent = { sha256: string; object: string; used_ms: number }

export const FILE_CONTENTS: CollectionSpec = { name: 'file_contents', key: ['sha256'] }

/**
 * What is to be looked after at `due_ms`: a file that expires, an upload that may have broken off. It is there before anything else of the file is,
 * and is deleted last, so that nothing is left that none of them names. `content` names the bytes that the file has, or is about to have: as long as
 * there is such an entry they stay. `object` is one that is being deleted. They belong to no tenant: one query finds those of all.
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
