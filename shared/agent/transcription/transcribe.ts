import { createReadStream } from 'node:fs'
import { PassThrough } from 'node:stream'
import type FormData from 'form-data'
import { AppError } from '../../kernel/errors.ts'
import type { Egress, EgressResponse } from '../../platform/net/port.ts'

/** A received upload: its file on disk, and the other fields verbatim, in their order. */
export type Upload = {
  fields: readonly (readonly [name: string, value: string])[]
  file: { path: string; name: string; contentType: string; bytes: number }
}

/** The backend that transcribes: `url` is the base of its API. */
export type Backend = {
  instance: string
  url: string
  key: string | undefined
  headers: Readonly<Record<string, string>>
  timeoutMs: number
}

/** A backend's answer is text, and no transcript is larger than this. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

/**
 * Forwards an upload to `<url>/audio/transcriptions` (D9.1), read from the disk as fast as the backend takes it and with a known
 * length. Resolves with the backend's answer, whatever its status. Throws `upstream` when the backend cannot be reached or
 * redirects; aborting `signal` closes the connection.
 */
export async function transcribe(
  { fields, file }: Upload,
  backend: Backend,
  { request, signal }: Pick<Egress, 'request'> & { signal: AbortSignal },
): Promise<EgressResponse> {
  const { default: Form } = await import('form-data')
  const form = new Form()
  for (const [name, value] of fields) form.append(name, value)
  // form-data treats a length of 0 as unknown.
  const content = file.bytes === 0 ? undefined : createReadStream(file.path)
  const part = { filename: file.name, contentType: file.contentType, knownLength: file.bytes }
  form.append('file', content ?? Buffer.alloc(0), part)
  const headers = headersOf(form, backend) // Must come before the form is read: afterwards the form no longer knows its length.
  const body = form.pipe(new PassThrough())
  form.on('error', (cause) => body.destroy(cause)) // This includes errors of the file, which would otherwise end the process.
  body.once('close', () => content?.destroy()) // The file is closed when the body was sent, and also when the connection broke.
  try {
    const response = await request(`${backend.url.replace(/\/+$/, '')}/audio/transcriptions`, {
      method: 'POST',
      headers,
      body,
      signal,
      maxBytes: MAX_ANSWER_BYTES,
      timeoutMs: backend.timeoutMs,
    })
    if (response.status < 300 || response.status > 399) return response
    response.discard()
    throw new AppError('upstream', `it redirects the request (HTTP ${response.status})`)
  } catch (cause) {
    body.destroy()
    throw unreachable(cause, backend)
  }
}

function headersOf(form: FormData, { key, headers }: Backend): Record<string, string> {
  return {
    ...headers,
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    ...form.getHeaders(),
    'content-length': String(form.getLengthSync()),
  }
}

function unreachable(cause: unknown, { instance }: Backend): unknown {
  if (!(cause instanceof AppError) || cause.kind !== 'upstream') return cause
  return new AppError('upstream', `the transcription backend of instance ${instance} failed: ${cause.message}`, {
    ...(cause.code !== undefined && { code: cause.code }),
    cause,
  })
}
