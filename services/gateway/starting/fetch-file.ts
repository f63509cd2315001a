import { basename } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { MAX_SHOWN_BYTES } from '../../../shared/agent/providers/shown-files.ts'
import { AppError, invalidRequest } from '../../../shared/kernel/errors.ts'
import { truncateStart } from '../../../shared/kernel/text.ts'
import type { Egress } from '../../../shared/platform/net/port.ts'

/** Fetches a file from a URL in a request. Every failure, also of the other server, is `invalid_request` at `param`. */
export type FetchFile = (url: string, param: string) => Promise<{ content: Buffer; name: string }>

const MAX_HOPS = 5
const TIMEOUT_MS = 30_000
const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** The files that this process fetches at the same time: each may be in memory as a whole. */
const MAX_FETCHES = 16

/** Fetches through the guarded outgoing client, which checks each redirect like the first address. */
export function createFetchFile(open: () => Promise<Pick<Egress, 'request'>>, timeoutMs = TIMEOUT_MS): FetchFile {
  let fetches = 0
  return async (url, param) => {
    if (fetches >= MAX_FETCHES)
      throw new AppError('unavailable', 'many files are being fetched: try again in a moment', { retryAfterSecs: 2 })
    fetches++
    try {
      return await fetchFrom(await open(), { url, param, signal: AbortSignal.timeout(timeoutMs), timeoutMs })
    } finally {
      fetches--
    }
  }
}

type Fetching = { url: string; param: string; signal: AbortSignal; timeoutMs: number }

async function fetchFrom(egress: Pick<Egress, 'request'>, { url, param, signal, timeoutMs }: Fetching) {
  const refuse = (message: string, cause?: unknown) =>
    invalidRequest(`the attached file cannot be fetched: ${message}`, {
      ...{ param, cause },
      ...(cause instanceof AppError && cause.code !== undefined && { code: cause.code }),
    })
  let address = url
  try {
    for (let hop = 0; hop <= MAX_HOPS; hop++) {
      const { status, headers, body, discard } = await egress.request(address, {
        headers: { 'user-agent': 'agent-engine' },
        ...{ signal, timeoutMs, maxBytes: MAX_SHOWN_BYTES },
      })
      const { location } = headers
      if (status >= 200 && status < 300) {
        const content = await buffer(body)
        if (content.length === 0) throw refuse('the answer is empty')
        return { content, name: nameOf(headers['content-disposition'], address) }
      }
      discard()
      const next = REDIRECTS.has(status) && typeof location === 'string' ? URL.parse(location, address) : null
      if (!next) throw refuse(`the server answered ${status}`)
      address = next.href
    }
    throw refuse(`the address redirects more than ${MAX_HOPS} times`)
  } catch (cause) {
    if (cause instanceof AppError) throw cause.param === param ? cause : refuse(cause.message, cause)
    if (signal.aborted) throw refuse('the server did not answer in time', cause)
    throw cause
  }
}

/** The name that the server gives the file, or else the last part of its address. */
function nameOf(disposition: string | string[] | undefined, address: string): string {
  const [, given] = /filename="?([^";]+)"?/i.exec(String(disposition ?? '')) ?? []
  const path = new URL(address).pathname
  const name = basename(given ?? decoded(path)).replaceAll(/[/\\\p{Cc}]/gu, '_')
  return /^\.{0,2}$/.test(name) ? 'file' : truncateStart(name, 200)
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
