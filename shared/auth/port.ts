import type { TenantId } from '../tenant.ts'

/** Who asks. The tenant comes from here and from nowhere else (api.md "Authentication" 8). */
export type Identity = { tenant: TenantId; subject: string }

/**
 * Reads the `Authorization` header. Throws `authentication` (401), `permission` (403, the standalone form's token), or `unavailable`
 * (503) while the header cannot be checked; whatever else happens, nobody is let in.
 */
export type Identify = (authorization: string | undefined) => Promise<Identity>

export type HttpAnswer = {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  body: AsyncIterable<Uint8Array>
  discard(): void
}

/** A GET that follows no redirect and keeps to its limits; `request` of providers/egress is one. Throws `AppError`. */
export type HttpGet = (
  url: string,
  limits: { signal: AbortSignal; maxBytes: number; timeoutMs: number },
) => Promise<HttpAnswer>

/** Two clocks, in milliseconds: ages and waits go by the first, which never jumps; a token's times by the second. */
export type Clock = { monotonicMs: () => number; epochMs: () => number }
