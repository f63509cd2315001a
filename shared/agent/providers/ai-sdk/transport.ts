import type { CallWatch } from '../call-watch.ts'
import { type ConnectionOptions, openConnections } from '../connections.ts'
import { toldLimits } from '../told-limits.ts'
import { type BodyReader, EventBody } from './event-body.ts'
import { createEventFields } from './event-fields.ts'
import type { VendorDialect } from './vendors.ts'

export type Fetch = typeof globalThis.fetch

/** `fetch` over a connection pool of its own. */
export async function createTransport(options: ConnectionOptions): Promise<Fetch> {
  // Loaded only here: it takes some 25 MiB, and a process without such a provider does not need it.
  const undici = await import('undici')
  const dispatcher = openConnections(options)
  const fetch: typeof undici.fetch = (url, init) => {
    const headers = new undici.Headers(init?.headers)
    headers.set('accept-encoding', 'identity') // A compressed stream is delayed until it fills a block.
    return undici.fetch(url, { ...init, headers, dispatcher })
  }
  return fetch as unknown as Fetch
}

/** Adds the query of the base URL to each request: the packages build addresses as text, without it. */
export function withQueryOf(base: URL, transport: Fetch): Fetch {
  if (base.search === '') return transport
  return (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input)
    for (const [name, value] of base.searchParams) url.searchParams.set(name, value)
    return transport(url, init)
  }
}

type Watched = { dialect: VendorDialect; watches: WeakMap<AbortSignal, CallWatch> }

/**
 * Wraps `fetch` so that the watch of each call sees its bytes, and the package gets events that it accepts (`EventBody`). The watch is found by
 * the call's signal, which the package passes to `fetch`. Redirects are not followed: they would carry the key to another host.
 */
export function createWatchedFetch(transport: Fetch, { dialect, watches }: Watched): Fetch {
  return async (input, init) => {
    const watch = init?.signal && watches.get(init.signal)
    if (!watch) throw new Error('a request to a model has no CallWatch')
    watch.isSent = true
    const response = await transport(input, { ...init, redirect: 'manual' })
    if (response.ok) watch.onTold?.(toldLimits((name) => response.headers.get(name)))
    const reader = watchedReader(response, watch)
    if (!reader) return response
    if (!response.ok) return withReader(response, reader)
    if (isJson(response)) throw new JsonAnswer(await readText(reader))
    const events = new EventBody(reader, createEventFields(dialect), watch)
    return withReader(response, { ...reader, read: () => events.read() })
  }
}

/** A JSON document in place of a stream: an error that was sent with a status of success. */
class JsonAnswer extends Error {
  readonly responseBody: string

  constructor(responseBody: string) {
    super('the answer is no event stream')
    this.responseBody = responseBody
  }
}

const isJson = ({ headers }: Response) => headers.get('content-type')?.startsWith('application/json') === true

async function readText(reader: BodyReader): Promise<string> {
  const chunks: Uint8Array[] = []
  for (let next = await reader.read(); !next.done; next = await reader.read()) chunks.push(next.value)
  return new TextDecoder().decode(Buffer.concat(chunks))
}

type ClosableReader = BodyReader & { cancel(reason?: unknown): Promise<void>; releaseLock(): void }

function watchedReader({ ok, headers, body }: Response, watch: CallWatch): ClosableReader | undefined {
  if (ok && headers.get('content-type')?.startsWith('text/html')) watch.end('web_page')
  const reader = body?.getReader()
  return (
    reader && {
      read: () => read(reader, ok, watch),
      cancel: (reason) => reader.cancel(reason),
      releaseLock: () => reader.releaseLock(),
    }
  )
}

/** Not a second web stream, which would cost CPU for every chunk: the package uses a body's reader and `cancel` only. */
const withReader = (response: Response, reader: ClosableReader): Response =>
  Object.defineProperty(response, 'body', { value: { getReader: () => reader, cancel: reader.cancel } })

async function read(reader: ReadableStreamDefaultReader<Uint8Array>, isStream: boolean, watch: CallWatch) {
  watch.beginRead()
  const result = await reader.read()
  if (result.done || watch.accept(result.value, isStream)) return result
  throw new Error(`the response was rejected: ${watch.breach}`)
}
