import type { Form } from './fields.ts'
import type { IsSet } from './model.ts'

/**
 * Finds combinations of authentication settings that D3.3 and D1.3 forbid. `isSet` looks at the environment and not at parsed
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
    ...['OIDC_AUDIENCE', 'OIDC_JWKS_URI', 'ADMIN_SCOPE'].map(
      (name) => isSet(name) && !hasIssuer && `${name} needs OIDC_ISSUER, which is not set`,
    ),
    isSet('API_TOKEN') && hasIssuer && 'API_TOKEN and OIDC_ISSUER exclude each other: unset one',
    isSet('API_TOKEN') && form === 'cluster' && 'API_TOKEN is for the standalone form only: unset it',
  ]
}

type Access = { host: string; apiToken: string | undefined; oidcIssuer: string | undefined }

/** Warns when other machines can reach a server that requires no token (api.md "Authentication" 5). */
export function openAccessWarning({ host, apiToken, oidcIssuer }: Access, form: Form): string | false {
  if (apiToken !== undefined || oidcIssuer !== undefined || isLoopback(host)) return false
  const missing = form === 'standalone' ? 'API_TOKEN' : 'OIDC_ISSUER'
  return `HOST=${host} without ${missing}: anyone who can reach the port can run agents`
}

const isLoopback = (host: string) => /^(localhost|127(\.\d{1,3}){3}|::1)$/.test(host)
