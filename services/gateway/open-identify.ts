import type { Identify } from '../../shared/auth/port.ts'
import type { Config } from '../../shared/config/config.ts'
import type { Log } from '../../shared/log.ts'
import { createOpenIdentify, createTokenIdentify } from './identify.ts'

export type OpenedIdentify = { identify: Identify; close(): Promise<void> }

/** Who may come in (api.md "Authentication"): whom the issuer names, who has the one token, or in development everybody. */
export async function openIdentify(config: Config, log: Log): Promise<OpenedIdentify> {
  const { apiToken, oidcIssuer, oidcAudience } = config
  if (oidcIssuer !== undefined && oidcAudience !== undefined) {
    return openOidc(config, { issuer: oidcIssuer, audience: oidcAudience, log })
  }
  const identify = apiToken === undefined ? createOpenIdentify() : createTokenIdentify(apiToken)
  return { identify, close: async () => {} }
}

type Oidc = { issuer: string; audience: string; log: Log }

/** Loaded only where there is an issuer: both take long. The issuer's address is the operator's, so it may be a private one. */
async function openOidc({ authMode, tenantClaim, oidcJwksUri }: Config, oidc: Oidc): Promise<OpenedIdentify> {
  const [{ createOidcIdentify }, { createEgress }] = await Promise.all([
    import('../../shared/auth/oidc.ts'),
    import('../../shared/net/egress.ts'),
  ])
  const egress = createEgress({ allowPrivate: true })
  const identify = createOidcIdentify({
    ...oidc,
    mode: authMode,
    tenantClaim,
    ...(oidcJwksUri !== undefined && { jwksUri: oidcJwksUri }),
    get: egress.request,
  })
  return { identify, close: egress.close }
}
