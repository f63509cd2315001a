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

export const FILES: CollectionSpec = {
  name: 'files',
  key: ['file_id'],
  order: { within: [], by: ['created_at', 'file_id'], direction: 'descending' },
  filters: ['sha256'],
  total: { within: [], of: 'bytes' },
}

/**
 * The bytes of a tenant's files, each once: `object` is their key in the objects, and `uses` counts the files that have them. The record is written
 * behind the object and deleted before it, so that a record always has its bytes.
 */
export type FileContent = { sha256: string; object: string; uses: number; used_ms: number }

export const FILE_CONTENTS: CollectionSpec = { name: 'file_contents', key: ['sha256'] }
