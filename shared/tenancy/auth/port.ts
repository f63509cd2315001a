import type { TenantId } from '../../kernel/tenant.ts'

/** The uses that a token may allow (D18a). */
export const SCOPES = ['read', 'run', 'approve', 'flows', 'admin'] as const
export type Scope = (typeof SCOPES)[number]

/** The authenticated caller. It is the only source of the tenant (api.md "Authentication" 8). */
export type Identity = {
  tenant: TenantId
  subject: string
  /** Missing if the token names none; it may then be used for everything. */
  scopes?: ReadonlySet<Scope>
  /** The token holds the scope of ADMIN_SCOPE. */
  isAdmin?: true
}

/**
 * Authenticates a request by its `Authorization` header. Throws `authentication` (401), `permission` (403, a wrong API_TOKEN), or
 * `unavailable` (503) while the header cannot be checked. Any other failure refuses the request too.
 */
export type Identify = (authorization: string | undefined) => Identity | Promise<Identity>

export type HttpAnswer = {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  body: AsyncIterable<Uint8Array>
  discard(): void
}

/** Sends a GET without following redirects and within the limits, like `request` of net/egress.ts. Throws `AppError`. */
export type HttpGet = (
  url: string,
  limits: { signal: AbortSignal; maxBytes: number; timeoutMs: number },
) => Promise<HttpAnswer>

/** Two clocks in milliseconds. Ages and waits use the monotonic one, the times in tokens use the other. */
export type Clock = { monotonicMs: () => number; epochMs: () => number }
