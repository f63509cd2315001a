import type { LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'

/** Checks for a client that makes its own connections: before a request, in place of the name lookup, and for each new connection. */
export type ConnectionGuard = {
  /** Throws `egress_refused`. */
  checkUrl(url: string): URL
  lookup: LookupFunction
  isAllowed(address: string): boolean
}

export type EgressRequest = {
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'HEAD'
  headers?: Record<string, string>
  body?: string | Uint8Array | Readable
  signal: AbortSignal
  /** Reading a longer body fails with `egress_too_large`. It is never more than 64 MiB. */
  maxBytes: number
  /** Limits the whole exchange, reading the body included. */
  timeoutMs: number
  /** Called in the event-loop turn in which the request is written to its connection. When it throws, nothing is written. */
  beforeSend?: () => void
}

export type EgressResponse = {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** The connection stays in use until the body is read to its end, the loop over it ends, or `discard` is called. */
  body: AsyncIterable<Uint8Array>
  discard(): void
}

/**
 * Sends HTTP requests to addresses that tenants or models supply.
 *
 * - Unless ALLOW_PRIVATE_URLS is set (D1.3), only addresses of the public internet are reached, on the ports 80, 443 and from
 *   1024 on. The address that is checked is the one that is connected to, so a second DNS answer has no effect (DNS rebinding).
 * - Only http and https URLs of at most 8,192 characters, without a user, are accepted.
 * - Redirects are returned, never followed. The proxy variables of the environment are ignored.
 * - A compressed response is refused, so that a small body cannot inflate. Response headers are limited to 16 KiB.
 *
 * Failures are `AppError`s whose messages never contain the address that a name resolved to: `invalid_request` with code
 * `egress_refused`, or `upstream` with code `egress_unreachable`, `egress_timeout` or `egress_too_large`. When the caller's
 * signal is aborted, its reason is thrown instead.
 */
export type Egress = {
  request(url: string, request: EgressRequest): Promise<EgressResponse>
  /** The same checks for packages that accept a `fetch`. It accepts an address; a `Request` or `FormData` is a TypeError. */
  fetch: typeof globalThis.fetch
  close(): Promise<void>
}
