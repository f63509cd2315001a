import { once } from 'node:events'
import type { Request as ExpressRequest, Response as ExpressResponse } from 'express'
import { withoutLineEnds } from '../../../../shared/kernel/json.ts'

/** The request as the SDK takes it, without its body and its credentials, which have been read. */
export function toWebRequest(req: ExpressRequest, signal: AbortSignal): Request {
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(req.headersDistinct)) {
    if (name !== 'authorization') for (const value of values) headers.append(name, value)
  }
  return new Request('http://gateway/mcp', { method: req.method, headers, signal })
}

/** Sends the SDK's answer, no faster than the client reads it. Resolves when it is sent, or the client has left. */
export async function sendWebResponse(response: Response, res: ExpressResponse, left: AbortSignal): Promise<void> {
  res.status(response.status)
  for (const [name, value] of response.headers) if (name !== 'connection') res.setHeader(name, value)
  if (response.body) res.flushHeaders()
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
  try {
    for await (const chunk of response.body ?? []) {
      if (!res.write(isStream ? framesOf(chunk) : chunk)) await once(res, 'drain', { signal: left })
    }
  } catch (cause) {
    if (!left.aborted) throw cause
  }
  res.end()
}

/** The SDK writes each frame as one chunk. */
const framesOf = (chunk: Uint8Array): string => withoutLineEnds(Buffer.from(chunk).toString())
