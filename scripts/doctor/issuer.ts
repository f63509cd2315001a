import { parseJson } from '../../shared/kernel/json.ts'
import { createEgress } from '../../shared/platform/net/egress.ts'
import { createReadKeys } from '../../shared/tenancy/auth/published-keys.ts'
import { type Check, type Finding, reasonOf } from './finding.ts'

/** The identity provider: its discovery document, its keys, and its clock. */
export const checkIssuer: Check = async ({ config: { oidcIssuer, oidcJwksUri } }) => {
  if (oidcIssuer === undefined) return []
  const egress = createEgress({ allowPrivate: true })
  const findings: Finding[] = []
  const warn = (problem: string) =>
    findings.push({ problem, cure: 'run a time service such as chrony on both machines' })
  const log = { error: warn, warn, info: () => {}, debug: () => {} }
  const clock = { epochMs: Date.now, monotonicMs: () => performance.now() }
  try {
    await createReadKeys({ issuer: oidcIssuer, jwksUri: oidcJwksUri, get: egress.request, clock, log })()
  } catch (cause) {
    const cure =
      'set OIDC_ISSUER to the `issuer` of the discovery document, character by character, and OIDC_JWKS_URI to its keys'
    findings.push({ problem: `no key of the issuer can be read, so every token is refused: ${reasonOf(cause)}`, cure })
  } finally {
    await egress.close()
  }
  return findings
}

/** Whether the claims of the given token are those that the settings want. Its signature is not checked. */
export const checkToken: Check = async ({ token, config: { oidcIssuer, oidcAudience, tenantClaim } }) => {
  if (token === undefined || oidcIssuer === undefined) return []
  const claims = parseJson(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as
    | Record<string, unknown>
    | undefined
  if (!claims)
    return [{ problem: 'DOCTOR_TOKEN is not a JWT', cure: 'get an access token in the format JWT from the issuer' }]
  const audiences = [claims['aud']].flat()
  const findings: (Finding | false)[] = [
    claims['iss'] !== oidcIssuer && {
      problem: `the token was issued by ${JSON.stringify(claims['iss'])} and not by OIDC_ISSUER`,
      cure: 'set OIDC_ISSUER to exactly this text, or get the token from OIDC_ISSUER',
    },
    !audiences.includes(oidcAudience) && {
      problem: `the token is for the audience ${JSON.stringify(claims['aud'])} and not for OIDC_AUDIENCE`,
      cure: 'set OIDC_AUDIENCE to the audience of your tokens, or have the client ask for it',
    },
    typeof claims[tenantClaim] !== 'string' && {
      problem: `the token has no text in the claim ${tenantClaim}, which names the tenant`,
      cure: 'set TENANT_CLAIM to the claim that names it, or add the claim at the issuer',
    },
  ]
  return findings.filter((finding) => finding !== false)
}
