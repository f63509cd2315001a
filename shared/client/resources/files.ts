import type { Schema } from '../api.ts'
import type { Raw } from '../http/raw.ts'
import type { CallOptions } from '../http/transport.ts'

/** `name`: that of the file unless given. */
export type UploadOptions = CallOptions & { name?: string | undefined; expiresInSecs?: number | undefined }

export type Files = ReturnType<typeof createFiles>

/** A large file takes its time. */
const UPLOAD_MS = 600_000

/**
 * Files that prompts and flows name by their ids: `createFiles(engine)`. It is no part of the engine, so that a page which sends no files loads nothing of
 * it. `engine.raw` has the rest: lists, and `GET /files/{file_id}`.
 */
export const createFiles = ({ raw }: { raw: Raw }) => ({
  /** Keeps a file: one of this machine by its path, a `Blob`, or bytes. It is sent once, and not again where no answer comes. */
  async upload(file: string | Blob | Uint8Array<ArrayBuffer>, options: UploadOptions = {}): Promise<Schema<'File'>> {
    const { name = nameOf(file), expiresInSecs, ...call } = options
    const body = typeof file === 'string' ? await openPath(file) : new Blob([file])
    const query = { name, expires_in_secs: expiresInSecs }
    return raw.request<Schema<'File'>>('POST', '/files', { timeoutMs: UPLOAD_MS, ...call, query, body })
  },

  /** Keeps files, one after the other, as `attachments` of a prompt has them. */
  async attach(...files: (string | Blob)[]): Promise<{ file_id: string }[]> {
    const attached: { file_id: string }[] = []
    for (const file of files) attached.push({ file_id: (await this.upload(file)).file_id })
    return attached
  },

  delete: (file_id: string, options?: CallOptions) => raw.delete('/files/{file_id}', { ...options, path: { file_id } }),
})

const nameOf = (file: string | Blob | Uint8Array): string | undefined =>
  typeof file === 'string' ? file.replace(/^.*[/\\]/s, '') : (file as Partial<File>).name

/** It is read while it is sent. The module's name stands in a variable, since bundlers of web pages would look for it. */
async function openPath(file: string): Promise<Blob> {
  const fs = 'node:fs'
  const { openAsBlob } = (await import(/* @vite-ignore */ fs)) as { openAsBlob(path: string): Promise<Blob> }
  return openAsBlob(file)
}
