import type { Schema } from '../../../shared/client/api.ts'
import { ApiError, ConnectionFailed, objectIn } from '../../../shared/client/errors.ts'
import { leaving } from '../base/tab.ts'
import { apiUrl, newestToken } from './engine.ts'

type Sending = { signal: AbortSignal; onProgress(share: number): void }

/** Uploads a file to the server. If the token is refused, a new one is requested once. Throws the same errors as the client. */
export async function upload(file: File, sending: Sending): Promise<Schema<'File'>> {
  const bearer = await newestToken()
  let answer = await sendBytes(file, bearer, sending)
  if (answer.status === 401) answer = await sendBytes(file, await newestToken(bearer), sending)
  const text = await answer.text()
  if (!answer.ok) throw new ApiError(answer, text)
  const kept = objectIn(text) as Schema<'File'> | undefined
  if (kept?.file_id === undefined) throw new ConnectionFailed('the answer is not one of this server')
  return kept
}

/** `fetch` does not report how much of a body it has sent. */
function sendBytes(file: File, bearer: string | undefined, { signal, onProgress }: Sending): Promise<Response> {
  const request = new XMLHttpRequest()
  const until = AbortSignal.any([leaving().signal, signal])
  return new Promise((resolve, reject) => {
    request.open('POST', `${apiUrl()}/files?name=${encodeURIComponent(file.name)}`)
    request.setRequestHeader('content-type', 'application/octet-stream')
    if (bearer !== undefined) request.setRequestHeader('authorization', `Bearer ${bearer}`)
    request.upload.addEventListener('progress', ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0))
    request.addEventListener('load', () => resolve(new Response(request.responseText, { status: request.status })))
    request.addEventListener('error', () => reject(new ConnectionFailed(NOT_SENT)))
    request.addEventListener('abort', () => reject(until.reason as Error))
    until.addEventListener('abort', () => request.abort(), { once: true })
    if (until.aborted) reject(until.reason as Error)
    else request.send(file)
  })
}

const NOT_SENT = 'the connection broke, or this browser cannot read the file'
