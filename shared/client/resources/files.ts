import type { Schema } from '../api.ts'
import type { Raw } from '../http/raw.ts'
import type { CallOptions } from '../http/transport.ts'

/** `name`: by default the file's own name. */
export type UploadOptions = CallOptions & { name?: string | undefined; expiresInSecs?: number | undefined }

export type Files = ReturnType<typeof createFiles>

/** A large file may take this long. */
const UPLOAD_MS = 600_000

/**
 * Files that prompts and flows name by their ids: `createFiles(engine)`. A separate function, so that pages without files do not load it. Use
 * `engine.raw` for lists and `GET /files/{file_id}`.
 */
export const createFiles = ({ raw }: { raw: Raw }) => ({
  /** Keeps a file: one of this machine by its path, a `Blob`, or bytes. It is sent only once, even if no answer comes. */
  async upload(file: string | Blob | Uint8Array<ArrayBuffer>, options: UploadOptions = {}): Promise<Schema<'File'>> {
    const { name = nameOf(file), expiresInSecs, ...call } = options
    const body = typeof file === 'string' ? await openPath(file) : new Blob([file])
    const query = { name, expires_in_secs: expiresInSecs }
    return raw.request<Schema<'File'>>('POST', '/files', { timeoutMs: UPLOAD_MS, ...call, query, body })
  },

  /** Keeps files, one after the other. Returns the `attachments` of a prompt. */
  async attach(...files: (string | Blob)[]): Promise<{ file_id: string }[]> {
    const attached: { file_id: string }[] = []
    for (const file of files) attached.push({ file_id: (await this.upload(file)).file_id })
    return attached
  },

  delete: (file_id: string, options?: CallOptions) => raw.delete('/files/{file_id}', { ...options, path: { file_id } }),
})

const nameOf = (file: string | Blob | Uint8Array): string | undefined =>
  typeof file === 'string' ? file.replace(/^.*[/\\]/s, '') : (file as Partial<File>).name

/** The file is read while it is sent. The module's name is in a variable, so that bundlers for web pages do not search for the module. */
async function openPath(file: string): Promise<Blob> {
  const fs = 'node:fs'
  const { openAsBlob } = (await import(/* @vite-ignore */ fs)) as { openAsBlob(path: string): Promise<Blob> }
  return openAsBlob(file)
}
