import type { Form } from './fields.ts'
import type { IsSet } from './model.ts'

/**
 * Finds combinations of authentication settings that D3.3 and D1.3b forbid. `isSet` looks at the environment and not at parsed
 * values.
 */
export function authProblems(authMode: string | undefined, form: Form, isSet: IsSet): (string | false)[] {
  const hasIssuer = isSet('OIDC_ISSUER')
  return [
    (authMode === 'soft' || authMode === 'enforced') &&
      !hasIssuer &&
      `AUTH_MODE=${authMode} needs OIDC_ISSUER, which is not set`,
    hasIssuer &&
      !isSet('OIDC_AUDIENCE') &&
      'OIDC_AUDIENCE is not set, but OIDC_ISSUER is: wanted the audience that tokens for this service name',
    ...['OIDC_AUDIENCE', 'OIDC_JWKS_URI', 'ADMIN_SCOPE', 'SCOPE_CLAIM'].map(
      (name) => isSet(name) && !hasIssuer && `${name} needs OIDC_ISSUER, which is not set`,
    ),
    isSet('API_TOKEN') && hasIssuer && 'API_TOKEN and OIDC_ISSUER exclude each other: unset one',
    isSet('API_TOKEN') && form === 'cluster' && 'API_TOKEN is for the standalone form only: unset it',
  ]
}

type Access = Record<'publishedAddress' | 'apiToken' | 'oidcIssuer', string | undefined> & { host: string }

/** The warning about an API that other machines can reach and that requires no token (api.md "Authentication" 5). */
export function openAccessWarning(access: Access, form: Form): string | undefined {
  const { host, publishedAddress, apiToken, oidcIssuer } = access
  const address = publishedAddress ?? host
  if (apiToken !== undefined || oidcIssuer !== undefined || isLoopback(address)) return undefined
  const [name, missing] = [
    publishedAddress === undefined ? 'HOST' : 'PUBLISHED_ADDRESS',
    form === 'standalone' ? 'API_TOKEN or OIDC_ISSUER' : 'OIDC_ISSUER',
  ]
  return `${name}=${address} without ${missing}: anyone who can reach the port can run agents; set ${missing}, or listen on 127.0.0.1`
}

const isLoopback = (host: string) => /^(localhost|127(\.\d{1,3}){3}|::1)$/.test(host)
