import type { CallWatch } from '../call-watch.ts'

export type Fetch = typeof globalThis.fetch

/** `fetch` for one call. Its answer is read under watch, and redirects are not followed: they would carry the key along. */
export const watchedFetch =
  (watch: CallWatch, transport: Fetch): Fetch =>
  async (input, init) => {
    watch.isSent = true
    return guard(await transport(input, { ...init, redirect: 'manual' }), watch)
  }

function guard(response: Response, watch: CallWatch): Response {
  if (response.ok && response.headers.get('content-type')?.startsWith('text/html')) watch.break('web_page')
  if (!response.body) return response
  const reader = response.body.getReader()
  const guarded = {
    read: () => read(reader, response.ok, watch),
    cancel: (reason: unknown) => reader.cancel(reason),
    releaseLock: () => reader.releaseLock(),
  }
  const body = { getReader: () => guarded, cancel: guarded.cancel }
  // The package asks a body for nothing but its reader, and a second web stream around it would cost every chunk again.
  return Object.defineProperty(response, 'body', { value: body })
}

async function read(reader: ReadableStreamDefaultReader<Uint8Array>, isStream: boolean, watch: CallWatch) {
  watch.ask()
  const result = await reader.read()
  if (result.done || watch.take(result.value, isStream)) return result
  throw new Error(`the answer is not acceptable: ${watch.breach}`)
}
