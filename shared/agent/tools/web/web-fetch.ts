import { TextDecoder } from 'node:util'
import { invalidRequest } from '../../../kernel/errors.ts'
import { showHidden, truncate } from '../../../kernel/text.ts'
import { attempt } from '../attempt.ts'
import { isStricter } from '../policy-rules.ts'
import { fail, succeed, type Tool, type ToolOutcome } from '../port.ts'
import { addressSubject } from './address-rules.ts'
import { toReadableText } from './readable-text.ts'

type Page = {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  body: AsyncIterable<Uint8Array>
  discard: () => void
}

type PageRequest = {
  headers: Record<string, string>
  signal: AbortSignal
  timeoutMs: number
  maxBytes: number
  beforeSend: () => void
}

export type WebFetchDeps = {
  /** Opens the guarded outgoing client (shared/platform/net/egress.ts) at first use: a process that never fetches does not load undici. */
  egress: () => Promise<{ request(url: string, request: PageRequest): Promise<Page> }>
  timeoutMs?: number
  maxBytes?: number
}

const MAX_HOPS = 5
const MAX_SHOWN_URL = 2_000
const REDIRECTS = new Set([301, 302, 303, 307, 308])
const HEADERS = {
  'user-agent': 'agent-engine (WebFetch)',
  accept: 'text/html, application/json;q=0.9, text/*;q=0.8, application/xml;q=0.7',
}
const TEXT_TYPES = /^(text\/.+|application\/(.+\+)?(json|xml|yaml|x-ndjson|javascript|toml))$/
const HTML_TYPES = /^(text\/html|application\/xhtml\+xml)$/

/**
 * Creates `WebFetch` (D5.1), which fetches one page through the guarded outgoing client. Redirects within the origin are followed, without a
 * cookie or credential from the previous answer; one to another origin, or to an address with a stricter rule, is returned, because only the
 * first was approved (D5.2).
 */
export function createWebFetchTool({ egress, timeoutMs = 30_000, maxBytes = 1024 * 1024 }: WebFetchDeps): Tool {
  return {
    name: 'WebFetch',
    description: `Fetches a web page or other text over http or https with GET. HTML is reduced to readable text with links as [text](address); JSON and other text is returned unchanged. At most ${Math.ceil(maxBytes / 1024)} KiB are read.`,
    inputSchema: {
      type: 'object',
      properties: {
        url: { type: 'string', minLength: 1, maxLength: 8_192, description: 'The address, with http or https.' },
      },
      required: ['url'],
    },
    defaultPolicy: 'ask',
    isReadOnly: true,
    ruleSubject: ({ url }) => addressSubject(String(url)),
    describe: ({ url }) => `Fetch ${truncate(String(url), 500)}.`,
    preview: async ({ url }) => ({ kind: 'request', method: 'GET', url: showHidden(String(url)) }),
    run(input, { signal, assertMayAct, policyOf }) {
      const { url } = input as { url: string }
      return attempt({ subject: url, signal }, async () => {
        const client = await egress()
        const deadline = performance.now() + timeoutMs
        const mayFollow = (next: string) =>
          !isStricter(policyOf('WebFetch', { url: next }), policyOf('WebFetch', { url }))
        const get = (hop: string) => {
          const left = Math.max(1, Math.ceil(deadline - performance.now()))
          return client.request(hop, {
            ...{ headers: HEADERS, signal, timeoutMs: left, beforeSend: assertMayAct },
            maxBytes: Number.POSITIVE_INFINITY, // A page that is too long is not refused but cut below.
          })
        }
        const arrival = await followRedirects(url, { get, mayFollow })
        return 'elsewhere' in arrival ? succeed(notFetched(arrival)) : toOutcome(arrival, maxBytes)
      })
    },
  }
}

/** The page after all redirects and its address, or an address that was not approved. */
type Arrival = { page: Page; address: string } | Elsewhere
type Elsewhere = { elsewhere: string; what: string }

type Follow = { get(url: string): Promise<Page>; mayFollow(url: string): boolean }

async function followRedirects(url: string, { get, mayFollow }: Follow): Promise<Arrival> {
  let address = url
  for (let hop = 0; hop <= MAX_HOPS; hop += 1) {
    const page = await get(address)
    const { location } = page.headers
    if (!REDIRECTS.has(page.status) || typeof location !== 'string') return { page, address }
    page.discard()
    const next = URL.parse(location, address)
    if (!next) throw invalidRequest(`${new URL(address).host} redirects to an invalid address.`)
    if (next.origin !== new URL(address).origin) return { elsewhere: next.href, what: 'another origin' }
    if (!mayFollow(next.href)) return { elsewhere: next.href, what: 'a page for which a stricter rule holds' }
    address = next.href
  }
  throw invalidRequest(`The address redirects more than ${MAX_HOPS} times.`)
}

const notFetched = ({ elsewhere, what }: Elsewhere): string =>
  `The address redirects to ${what}, which was not fetched: ${truncate(elsewhere, MAX_SHOWN_URL)}\n\nCall WebFetch with that address to fetch it.`

async function toOutcome(
  { page: { status, headers, body, discard }, address }: Exclude<Arrival, Elsewhere>,
  maxBytes: number,
): Promise<ToolOutcome> {
  const contentType = String(headers['content-type'] ?? 'text/plain').toLowerCase()
  const type = contentType.replace(/;.*/s, '').trim()
  const isHtml = HTML_TYPES.test(type)
  if (status < 200 || status > 299) {
    discard()
    return fail(`The server answered ${status}. Check the address, or try another one.`)
  }
  if (!isHtml && !TEXT_TYPES.test(type)) {
    discard()
    return fail(`The content at the address has the type ${truncate(type, 100)}, which cannot be read as text.`)
  }
  const { bytes, isCut } = await firstBytes(body, maxBytes)
  const text = decodeText(bytes, charsetOf(contentType) ?? (isHtml ? metaCharsetOf(bytes) : undefined))
  const content = (isHtml ? await toReadableText(text, address) : text) || '(The page contains no text.)'
  return succeed(isCut ? `${content}\n\n[The page is longer than ${maxBytes} bytes; the rest was not read.]` : content)
}

/** Leaving the loop closes the connection, so the rest of a long page is not downloaded. */
async function firstBytes(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<{ bytes: Buffer; isCut: boolean }> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    length += chunk.length
    if (length > maxBytes) break
  }
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), isCut: length > maxBytes }
}

const charsetOf = (text: string): string | undefined => /charset=["']?([a-z0-9_:-]{1,40})/.exec(text)?.[1]
const metaCharsetOf = (bytes: Buffer) => charsetOf(bytes.toString('latin1', 0, 1_024).toLowerCase())

function decodeText(bytes: Buffer, charset = 'utf-8'): string {
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch (cause) {
    if (cause instanceof RangeError) return bytes.toString('utf8') // The charset is unknown.
    throw cause
  }
}
