import { AppError } from '../../shared/kernel/errors.ts'
import type { Log } from '../../shared/kernel/log.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import type { Authentication } from '../../shared/platform/api/document.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { Identify, Identity } from '../../shared/tenancy/auth/port.ts'
import { bearerOf, createTokenCheck } from '../http/token.ts'

export type OpenedIdentify = { identify: Identify; authentication: Authentication; close(): Promise<void> }

type IdentifySettings = Settings['http']['identify']

/** Selects the authentication (api.md "Authentication"): OIDC when an issuer is configured, else API_TOKEN, else none. */
export async function openIdentify(settings: IdentifySettings, log: Log): Promise<OpenedIdentify> {
  const { apiToken, oidcIssuer, oidcAudience } = settings
  if (oidcIssuer !== undefined && oidcAudience !== undefined) {
    return openOidc(settings, { issuer: oidcIssuer, audience: oidcAudience, log })
  }
  const close = async () => {}
  if (apiToken === undefined) return { identify: createOpenIdentify(), authentication: 'none', close }
  return { identify: createTokenIdentify(apiToken), authentication: 'api-token', close }
}

type Oidc = { issuer: string; audience: string; log: Log }

/**
 * Loads both modules only when an issuer is configured, because they load slowly. The operator chose the issuer, so its address
 * may be private.
 */
async function openOidc(
  { authMode, tenantClaim, oidcJwksUri, adminScope, scopeClaim }: IdentifySettings,
  oidc: Oidc,
): Promise<OpenedIdentify> {
  const [{ createOidcIdentify }, { createEgress }] = await Promise.all([
    import('../../shared/tenancy/auth/oidc.ts'),
    import('../../shared/platform/net/egress.ts'),
  ])
  const egress = createEgress({ allowPrivate: true })
  const identify = createOidcIdentify({
    ...oidc,
    mode: authMode,
    tenantClaim,
    adminScope,
    scopeClaim,
    jwksUri: oidcJwksUri,
    get: egress.request,
  })
  const authentication = authMode === 'soft' ? 'optional-oidc' : 'oidc'
  return { identify, authentication, close: egress.close }
}

const ANONYMOUS: Identity = { tenant: DEFAULT_TENANT, subject: 'anonymous' }

/** Accepts every request as the default tenant: development mode (api.md "Authentication" 5). */
export function createOpenIdentify(): Identify {
  return () => ANONYMOUS
}

/** Requires the one token of the standalone form (api.md "Authentication" 7). No token is 401, another token is 403. */
export function createTokenIdentify(token: string): Identify {
  const isToken = createTokenCheck(token)
  return (authorization) => {
    if (!authorization) throw new AppError('authentication', 'send a token: Authorization: Bearer <ACCESS_TOKEN>')
    if (isToken(bearerOf(authorization))) return ANONYMOUS
    throw new AppError('permission', 'this is not the API_TOKEN that the server was started with; send that one')
  }
}
