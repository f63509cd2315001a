import { parseTenant } from '../../kernel/tenant.ts'
import { type Identity, SCOPES } from './port.ts'
import { refused } from './refusals.ts'

export type ClaimRules = {
  issuer: string
  audience: string
  /** TENANT_CLAIM: the literal name of a claim. Dots and slashes are part of the name. */
  tenantClaim: string
  /** ADMIN_SCOPE; `undefined` if no scope is required. */
  adminScope?: string | undefined
  /** SCOPE_CLAIM; `undefined` if every token may be used for everything. */
  scopeClaim?: string | undefined
}

/** The accepted difference between the issuer's clock and ours (D3.1). */
const SKEW_SECS = 60

/**
 * Checks the claims of a verified token and reads the identity (D3.1, D3.2, D3.5). `claims` has no prototype. Throws
 * `authentication`.
 */
export function readClaims(
  claims: Readonly<Record<string, unknown>>,
  { issuer, audience, tenantClaim, adminScope, scopeClaim }: ClaimRules,
  nowMs: number,
): { identity: Identity; expiresMs: number } {
  const { iss, aud, exp, nbf, iat } = claims
  if (iss !== issuer) throw refused('issuer')
  if (aud !== audience && !(Array.isArray(aud) && aud.includes(audience))) throw refused('audience')
  if (!isTime(exp) || ![nbf, iat].every((time) => time === undefined || isTime(time))) throw refused('times')
  if (nowMs >= (exp + SKEW_SECS) * 1000) throw refused('expired')
  if (isTime(nbf) && nowMs < (nbf - SKEW_SECS) * 1000) throw refused('not_yet')
  const tenant = parseTenant(claims[tenantClaim])
  if (tenant === undefined) throw refused('tenant')
  const isAdmin = adminScope !== undefined && [claims['scope'], claims['scp']].some((claim) => holds(claim, adminScope))
  const granted = scopeClaim === undefined ? undefined : claims[scopeClaim]
  const identity: Identity = {
    tenant,
    subject: subjectOf(claims['sub']),
    ...(isAdmin && { isAdmin }),
    ...(granted !== undefined && { scopes: new Set(SCOPES.filter((scope) => holds(granted, scope))) }),
  }
  return { identity, expiresMs: exp * 1000 }
}

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)

/** Four times the length that OpenID Connect allows. */
const MAX_SUBJECT = 1_024

/** A `sub` that a store could not keep unchanged is treated as missing. */
function subjectOf(sub: unknown): string {
  const isUsable = typeof sub === 'string' && sub !== '' && sub.length <= MAX_SUBJECT && sub.isWellFormed()
  return isUsable ? sub : 'anonymous'
}

/** Scopes are separated by blanks, as in OAuth 2, or a list, as some issuers send in `scp`. */
const holds = (claim: unknown, scope: string): boolean =>
  typeof claim === 'string' ? claim.split(' ').includes(scope) : Array.isArray(claim) && claim.includes(scope)
