import { createReadStream } from 'node:fs'
import { PassThrough } from 'node:stream'
import type FormData from 'form-data'
import { AppError } from '../../kernel/errors.ts'
import type { Egress, EgressResponse } from '../../platform/net/port.ts'

/** An upload as it came: its file on disk, and the other fields in their order, verbatim. */
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

/** A backend's answer is text: no transcript is larger. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

/**
 * Sends an upload on to `<url>/audio/transcriptions` (D9.1), read from the disk as fast as the backend takes it and with a known
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
  // form-data takes a length of 0 for an unknown one.
  const content = file.bytes === 0 ? undefined : createReadStream(file.path)
  const part = { filename: file.name, contentType: file.contentType, knownLength: file.bytes }
  form.append('file', content ?? Buffer.alloc(0), part)
  const headers = headersOf(form, backend) // Before the form is read: afterwards it no longer knows its length.
  const body = form.pipe(new PassThrough())
  form.on('error', (cause) => body.destroy(cause)) // Also the file's, which would end the process here.
  body.once('close', () => content?.destroy()) // Sent, or the connection broke: either way the file is closed.
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
